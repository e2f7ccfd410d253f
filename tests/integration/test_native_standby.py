"""A process that is kept ready: it serves one start, holds nothing, and leaves nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from fake_hub import FakeHub
from native_machine import TOKEN, a_notebook, last_handle, native_settings, unheard
from notebook_client import Kernel, NotebookServer

from fleet_agent.drivers.base import Handle, Job, Standing
from fleet_agent.drivers.native.driver import NativeDriver
from fleet_agent.drivers.native.runs import RunFolder


pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.asyncio,
    pytest.mark.timeout(600),
]


@dataclass
class Machine:
    """A driver that keeps a process ready."""

    state: Path
    hub: FakeHub
    driver: NativeDriver
    started: list[Handle] = field(default_factory=list)

    async def start(self, epoch: int = 1, notebook: str = "anna-default") -> Handle:
        """Start the owner's notebook."""
        spec = a_notebook(self.hub, notebook=notebook)
        job = Job(allocation=notebook, epoch=epoch, spec=spec)
        await self.driver.prepare(job, unheard)
        handle = await last_handle(self.driver, job)
        self.started.append(handle)
        return handle

    async def stop(self, handle: Handle) -> None:
        """Stop it, and let the driver make a process ready."""
        await self.driver.stop(handle, grace_seconds=10)
        self.started.remove(handle)
        await asyncio.gather(*self.driver._renewals)

    def ready(self) -> list[psutil.Process]:
        """Return the sandbox tool of what is kept ready; nothing: there is none."""
        waiting = self.driver._standby._waiting
        if waiting is None:
            return []
        return [psutil.Process(waiting.confined.process.pid)]


@pytest_asyncio.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """A machine without a notebook."""
    state = tmp_path / "agent"
    state.mkdir(mode=0o700)
    async with FakeHub() as hub:
        driver = NativeDriver(native_settings(state, standby=True))
        machine = Machine(state, hub, driver)
        yield machine
        for handle in machine.started:
            await driver.stop(handle, grace_seconds=0)
        await driver.close()
    assert machine.ready() == []
    assert RunFolder.all(state / "standby") == []


async def test_the_next_start_of_a_stopped_notebook_is_served_by_what_was_kept_ready(
    machine: Machine,
) -> None:
    """Its sandbox and process become the server; another one is ready after its stop."""
    await machine.stop(await machine.start())
    (ready,) = machine.ready()

    handle = await machine.start(epoch=2)
    async with Kernel(NotebookServer(handle.url or "", TOKEN)) as kernel:
        said = await kernel.run(
            "import os; print(os.getcwd(), os.listdir('/tmp') != [])"
        )
    condition = await machine.driver.recover(handle)

    assert handle.data["supervisor"][0] == ready.pid
    assert said.split() == ["/home/jovyan", "True"]
    assert condition.standing is Standing.RUNNING
    assert RunFolder.all(machine.state / "standby") == []
    await machine.stop(handle)
    assert not ready.is_running()
    assert len(machine.ready()) == 1
    assert RunFolder.all(machine.state / "runs") == []


async def test_what_is_kept_ready_holds_no_secret(machine: Machine) -> None:
    """Nothing of the last start is in it."""
    await machine.stop(await machine.start())
    (ready,) = machine.ready()

    seen = await asyncio.to_thread(_all_of, ready, machine.state / "standby")

    assert b"HOME=/home/jovyan" in seen
    assert TOKEN.encode() not in seen


async def test_another_notebook_does_not_get_what_was_kept_ready(
    machine: Machine,
) -> None:
    """It would see the folder of the first one."""
    await machine.stop(await machine.start())
    (ready,) = machine.ready()

    other = await machine.start(notebook="anna-other")

    assert other.data["supervisor"][0] != ready.pid
    assert [each.pid for each in machine.ready()] == [ready.pid]
    await machine.stop(other)
    assert ready.pid not in [each.pid for each in machine.ready()]


async def test_a_start_goes_on_without_what_was_kept_ready(machine: Machine) -> None:
    """Whatever ended it."""
    await machine.stop(await machine.start())
    (ready,) = machine.ready()
    for process in [*ready.children(recursive=True), ready]:
        # With the one the others end by themselves.
        with suppress(psutil.NoSuchProcess):
            process.kill()
    await asyncio.to_thread(_until_zombie, ready)

    handle = await machine.start(epoch=2)

    assert handle.data["supervisor"][0] != ready.pid


async def test_the_end_of_the_agent_ends_what_was_kept_ready(
    machine: Machine, tmp_path: Path
) -> None:
    """Its channel closes as by kill -9, and the next agent removes its folder."""
    await machine.stop(await machine.start())
    (ready,) = machine.ready()
    waiting = machine.driver._standby._waiting
    assert waiting is not None
    waiting.confined.close()
    await asyncio.to_thread(_until_zombie, ready)

    assert len(RunFolder.all(machine.state / "standby")) == 1
    await NativeDriver(native_settings(machine.state)).open()
    assert RunFolder.all(machine.state / "standby") == []


async def test_a_machine_may_keep_nothing_ready(machine: Machine) -> None:
    """Its owner has better uses for the memory."""
    settings = replace(native_settings(machine.state), standby=False)
    machine.driver = NativeDriver(settings)

    await machine.stop(await machine.start())

    assert machine.ready() == []


def _all_of(process: psutil.Process, folder: Path) -> bytes:
    """Return the environments of *process* and its family, and what is in *folder*."""
    family = [process, *process.children(recursive=True)]
    environments = [Path(f"/proc/{each.pid}/environ").read_bytes() for each in family]
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return b"\n".join([*environments, *files])


def _until_zombie(process: psutil.Process) -> None:
    """Return once *process*, a child of ours, has ended; it is not reaped."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
