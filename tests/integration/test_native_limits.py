"""A native notebook is kept to what its class has, where control groups are ours."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from fake_hub import FakeHub
from native_machine import TOKEN, a_notebook, last_handle, native_settings
from notebook_client import Kernel, NotebookServer
from pretended_gpu import a_cuda

from fleet_agent.drivers.base import DriverError, Handle, Job
from fleet_agent.drivers.common import reaching
from fleet_agent.drivers.native import driver as driver_module
from fleet_agent.drivers.native.accelerators import nvidia_mounts
from fleet_agent.drivers.native.driver import NativeDriver
from fleet_agent.drivers.native.limits import MOST_PROCESSES, delegated
from fleet_agent.drivers.native.records import Record
from fleet_agent.drivers.native.runs import RunFolder
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Resources


pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.asyncio,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        delegated("x") is None,
        reason="no control groups of this system may be written",
    ),
]

MIB = 1 << 20
GREEDY = """
import subprocess, sys
eaten = subprocess.run([sys.executable, "-c", "x = bytearray(900 << 20)"])
print(eaten.returncode)
"""


class Machine:
    """One agent's driver, and the Hub of its notebooks."""

    def __init__(self, state: Path, hub: FakeHub) -> None:
        """Work in *state*."""
        self.state, self.hub = state, hub
        self.driver = NativeDriver(native_settings(state))

    def job(self, resources: Resources) -> Job:
        """Return the owner's notebook with *resources*."""
        spec = a_notebook(self.hub, resources=resources, start_seconds=120)
        return Job(allocation="notebook", epoch=1, spec=spec)

    def groups(self, handle: Handle) -> tuple[Path, ...]:
        """Return the control groups of what *handle* names."""
        return RunFolder(self.state / "runs" / handle.data["run"]).groups


@pytest_asyncio.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """Return a machine without a notebook."""
    state = tmp_path / "agent"
    state.mkdir(mode=0o700)
    async with FakeHub() as hub:
        yield Machine(state, hub)


async def test_a_notebook_is_in_groups_with_the_limits_of_its_class(
    machine: Machine,
) -> None:
    """What takes more than its memory is ended, and the machine keeps its own."""
    assert machine.driver.keeps_limits
    job = machine.job(Resources(cpu_milli=1500, memory_bytes=700 * MIB))
    await machine.driver.prepare(job, lambda progress: None)
    handle = await last_handle(machine.driver, job)
    groups = machine.groups(handle)
    try:
        written = {
            name: (place / name).read_text().strip()
            for place in groups
            for name in ("cpu.cfs_quota_us", "memory.limit_in_bytes", "pids.max")
            if (place / name).exists()
        }
        assert written == {
            "cpu.cfs_quota_us": "150000",
            "memory.limit_in_bytes": str(700 * MIB),
            "pids.max": str(MOST_PROCESSES),
        }
        first = Record.from_json(handle.data).first
        assert first is not None
        for place in groups:
            assert str(first.pid) in (place / "cgroup.procs").read_text().split()
        async with Kernel(NotebookServer(handle.url or "", TOKEN)) as kernel:
            assert (await kernel.run(GREEDY)).strip() == "-9"
            assert (await kernel.run("print('still here')")).strip() == "still here"
    finally:
        await machine.driver.stop(handle, grace_seconds=10)
    assert groups
    assert not any(place.exists() for place in groups)


async def test_a_server_that_its_class_is_too_small_for_is_told_so(
    machine: Machine,
) -> None:
    """Out of memory, not merely dead; and nothing of it is left."""
    job = machine.job(Resources(memory_bytes=30 * MIB))
    await machine.driver.prepare(job, lambda progress: None)

    with pytest.raises(DriverError) as refused:
        await last_handle(machine.driver, job)

    assert refused.value.explanation.reason is Reason.OUT_OF_MEMORY
    assert "its class" in (refused.value.explanation.detail or "")
    assert RunFolder.all(machine.state / "runs") == []
    assert _left(machine) == []


async def test_the_next_agent_removes_groups_that_no_run_has(machine: Machine) -> None:
    """An agent that was killed at a bad moment leaves nothing for ever."""
    groups = machine.driver._groups
    assert groups is not None
    for place in groups.places("of-a-killed-agent"):
        place.mkdir()

    await NativeDriver(native_settings(machine.state)).open()

    assert _left(machine) == []


def _left(machine: Machine) -> list[str]:
    groups = machine.driver._groups
    assert groups is not None
    return [
        path.name
        for base in set(groups.bases.values())
        for path in base.glob(f"{groups.name}-*")
    ]


async def test_a_gpu_class_sees_the_device_files_of_its_own_gpus_alone(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a real sandbox: one of two pretended GPUs, and what all GPUs share."""
    files, told = tmp_path / "dev", tmp_path / "driver"
    files.mkdir()
    for number, uuid in enumerate(("GPU-aa", "GPU-bb")):
        folder = told / "gpus" / f"0000:0{number}:00.0"
        folder.mkdir(parents=True)
        (folder / "information").write_text(
            f"GPU UUID: \t {uuid}\nDevice Minor: \t {number}\n"
        )
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        # As a file it is /dev/null under another name.
        os.mknod(files / name, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (files / name).chmod(0o666)
    monkeypatch.setattr(
        driver_module, "nvidia_mounts", lambda uuids: nvidia_mounts(uuids, told, files)
    )
    monkeypatch.setattr(reaching, "_SCRIPT", a_cuda() + reaching._SCRIPT)
    job = machine.job(Resources(devices=("GPU-bb",)))
    await machine.driver.prepare(job, lambda progress: None)
    handle = await last_handle(machine.driver, job)
    try:
        async with Kernel(NotebookServer(handle.url or "", TOKEN)) as kernel:
            seen = await kernel.run(
                "import glob, os\n"
                "print(sorted(glob.glob('/dev/nv*')), os.environ['CUDA_VISIBLE_DEVICES'])\n"
                "print(open('/dev/nvidia1', 'rb').read())"
            )
    finally:
        await machine.driver.stop(handle, grace_seconds=10)

    assert seen.splitlines() == [
        "['/dev/nvidia-uvm', '/dev/nvidia1', '/dev/nvidiactl'] GPU-bb",
        "b''",
    ]
