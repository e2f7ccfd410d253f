"""The simulation driver keeps what every driver promises."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from agent_support import a_runtime, a_spec
from patience import PATIENCE
from typing_extensions import override

from fleet_agent.drivers.base import Driver, Handle, Job
from fleet_agent.drivers.bench import Bench, Fault as Promised
from fleet_agent.drivers.conformance import Conformance
from fleet_agent.drivers.simulation import SimulationDriver
from fleet_agent.drivers.simulation_behaviour import Behaviour, Fault, Simulation


FAULTS = {
    Promised.FAILS_TO_PREPARE: Fault.PREPARE_FAILS,
    Promised.FAILS_HALF_STARTED: Fault.START_FAILS,
    Promised.DIES_BEFORE_READY: Fault.SERVER_DIES_EARLY,
    Promised.NEVER_READY: Fault.START_HANGS,
    Promised.IGNORES_STOP: Fault.SERVER_IGNORES_STOP,
}


class SimulationBench(Bench):
    """Jobs whose runtime's ref says what goes wrong with them."""

    patience_seconds = 15.0
    grace_seconds = 5.0

    def __init__(self, folder: Path) -> None:
        """Keep everything in *folder*."""
        self._folder = folder

    @override
    def driver(self) -> Driver:
        runtimes = {
            promised.value: Behaviour(fault=fault) for promised, fault in FAULTS.items()
        }
        return SimulationDriver(self._folder, Simulation(runtimes=runtimes))

    @override
    def job(self, name: str, fault: Promised | None = None) -> Job:
        spec = a_spec(
            runtime=a_runtime(ref=fault.value if fault else "plain"),
            start_seconds=1 if fault is Promised.NEVER_READY else 15,
        )
        return Job(allocation=name, epoch=1, spec=spec)

    @override
    async def is_running(self, handle: Handle) -> bool:
        return bool(_processes_in(self._folder / handle.data["folder"]))

    @override
    async def answers(self, handle: Handle) -> bool:
        return await asyncio.to_thread(_answers, str(handle.url))

    @override
    async def remove(self, handle: Handle) -> None:
        os.kill(handle.data["process"]["pid"], signal.SIGKILL)

    @override
    async def leftovers(self) -> list[str]:
        return [path.name for path in self._folder.glob("*")]


@pytest.mark.asyncio
class TestSimulationDriver(Conformance):
    """The published suite, with this driver's bench."""

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Bench:
        """Return a bench with a folder of its own."""
        return SimulationBench(tmp_path / "simulation")


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=PATIENCE) as answer:
            return bool(answer.status == 200)
    except URLError:
        return False


def _processes_in(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            inside = str((entry / "cwd").readlink()).startswith(str(folder))
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if inside and state != "Z":
            found.append(int(entry.name))
    return found
