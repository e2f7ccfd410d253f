"""The Docker driver keeps the promises of a driver, with a real engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from docker_engine import PrivateEngine
from docker_images import BROKEN, STUB
from docker_machine import a_container, docker_settings, status_of
from patience import PATIENCE
from typing_extensions import override

from fleet_agent.drivers.base import Handle, Job
from fleet_agent.drivers.bench import Bench, Fault
from fleet_agent.drivers.conformance import Conformance
from fleet_agent.drivers.docker.driver import DockerDriver


NOBODY_LISTENS = "127.0.0.1:1/absent:1"
_FAULTS = {
    Fault.DIES_BEFORE_READY: "dies",
    Fault.NEVER_READY: "never",
    Fault.IGNORES_STOP: "stubborn",
}


@dataclass
class DockerBench(Bench):
    """Containers of one private engine, with their faults."""

    state: Path
    engine: PrivateEngine
    client: Any
    drivers: list[DockerDriver] = field(default_factory=list)

    patience_seconds = 2 * PATIENCE
    grace_seconds = 20.0

    @override
    def driver(self) -> DockerDriver:
        self.drivers.append(DockerDriver(docker_settings(self.state, self.engine)))
        return self.drivers[-1]

    @override
    def job(self, name: str, fault: Fault | None = None) -> Job:
        ref = {
            Fault.FAILS_TO_PREPARE: NOBODY_LISTENS,
            # The container is there when it turns out that it cannot be started.
            Fault.FAILS_HALF_STARTED: BROKEN,
        }.get(fault or Fault.DISAPPEARS, STUB)
        spec = a_container(
            ref,
            notebook=name,
            environment={
                "FLEET_TEST_FAULT": _FAULTS.get(fault or Fault.DISAPPEARS, "")
            },
            start_seconds=3 if fault is Fault.NEVER_READY else PATIENCE,
        )
        return Job(allocation=name, epoch=1, spec=spec)

    @override
    async def is_running(self, handle: Handle) -> bool:
        return bool(self.client.containers(filters=self._label(handle)))

    @override
    async def answers(self, handle: Handle) -> bool:
        return await status_of(handle.url) == 200

    @override
    async def remove(self, handle: Handle) -> None:
        self.client.remove_container(handle.data["container"], force=True)

    @override
    async def leftovers(self) -> list[str]:
        runs = self.state / "runs"
        folders = [path.name for path in runs.iterdir()] if runs.is_dir() else []
        containers = self.client.containers(all=True)
        return [*folders, *(container["Id"] for container in containers)]

    def _label(self, handle: Handle) -> dict[str, str]:
        return {"label": f"org.jupyter.fleet.run={handle.data['run']}"}


@pytest.mark.asyncio
@pytest.mark.slow
@pytest.mark.timeout(300)
class TestDockerDriver(Conformance):
    """Every promise, for real."""

    @pytest_asyncio.fixture
    async def bench(
        self, tmp_path: Path, shared_engine: PrivateEngine, client: Any
    ) -> AsyncIterator[DockerBench]:
        """A machine with an engine."""
        bench = DockerBench(state=tmp_path, engine=shared_engine, client=client)
        yield bench
        for driver in bench.drivers:
            await driver.close()
