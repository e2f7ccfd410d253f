"""A start that begins with a copy: in which order, and what is left when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from agent_support import a_runtime, a_spec
from copying_lines import ME, Dialled, Pipe, a_folder, hostile, parts
from heard_agent import Building, Ear
from probe_machines import a_pretend_machine, settings_for
from typing_extensions import override

from fleet_agent.agent import Agent
from fleet_agent.copying.frames import Writer
from fleet_agent.copying.lines import Dial
from fleet_agent.drivers.base import (
    Condition,
    DriverError,
    Handle,
    Job,
    NotebookFolder,
    Standing,
)
from fleet_agent.drivers.common.folders import NotebookFolders
from fleet_agent.ledger import Ledger
from fleet_agent.link import Link
from fleet_contracts.protocol import AgentEvent, Launch, SendFiles, Stop
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import CopyOrder, DriverName, RefSource


pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.usefixtures("first_facts_in_time"),
]

ENDS = (AgentEvent.SERVING, AgentEvent.FAILED, AgentEvent.ENDED)


class Keeping(Building):
    """A driver that keeps files, and starts only where they are."""

    def __init__(self, base: Path, *, fails: bool = False) -> None:
        """Keep them in *base*."""
        super().__init__()
        self.folders = NotebookFolders(base)
        self.fails = fails

    @override
    def notebook(self, name: str, owner_id: int, owner: str) -> NotebookFolder:
        return self.folders.named(name, ME)

    @override
    def notebooks(self) -> Path:
        return self.folders.base

    @override
    async def start(self, job: Job, progress: Any) -> AsyncIterator[Handle]:
        folder = self.folders.ensure(job.spec.notebook, ME)
        assert (folder / "sub" / "file").exists(), "it begins with the files"
        self.started.append(job.allocation)
        yield Handle(allocation=job.allocation, data={})
        if self.fails:
            raise DriverError(Reason.START_FAILED, "on purpose")
        yield Handle(allocation=job.allocation, data={}, url="http://127.0.0.1:1/")

    @override
    async def recover(self, handle: Handle) -> Condition:
        return Condition(standing=Standing.RUNNING)


@asynccontextmanager
async def an_agent(
    folder: Path, driver: Building, dial: Dialled
) -> AsyncIterator[tuple[Agent, Ear]]:
    """Run an agent that has one driver."""
    ear, ledger = Ear(), Ledger(folder / "ledger.sqlite")
    agent = Agent(
        ledger=ledger,
        drivers={DriverName.NATIVE: driver},
        owner="olivia",
        service_url="http://127.0.0.1:1/services/fleet/",
        detection=settings_for(a_pretend_machine()),
        detect_seconds=3600,
        dial=cast("Dial", dial),
    )
    running = asyncio.create_task(agent.run(cast("Link", ear)))
    try:
        await ear.lives.wait()
        yield agent, ear
    finally:
        await agent.close(stop_workloads=False)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        ledger.close()


def a_launch(**changes: Any) -> Launch:
    """Return the launch of a notebook that begins with a copy."""
    runtime = a_runtime(
        driver=DriverName.NATIVE, ref="jupyter", source=RefSource.DRIVER_REFS
    )
    values = {"runtime": runtime, "copy_order": CopyOrder(limit_bytes=1 << 30)}
    return Launch(allocation="one", epoch=1, spec=a_spec(**values | changes))


def left(base: Path) -> list[str]:
    """Return what is in the notebooks' folder, places without content aside."""
    found = (path.relative_to(base) for path in base.rglob("*"))
    return sorted(str(path) for path in found if path.name[0] != ".")


async def test_the_files_are_there_before_the_server_and_stay(tmp_path: Path) -> None:
    """Prepared, then copied, then started; after its end they are the user's."""
    stream = parts(a_folder(tmp_path / "old"))
    driver = Keeping(tmp_path / "new")
    dial = Dialled(Pipe(stream))
    async with an_agent(tmp_path, driver, dial) as (agent, ear):
        agent.receive(a_launch())
        assert (await ear.until(AgentEvent.NOTE)).explanation is not None
        await ear.until(AgentEvent.PREPARED)
        assert (await ear.until(*ENDS)).event is AgentEvent.SERVING
        agent.receive(a_launch())
        agent.receive(Stop(allocation="one", epoch=1))
        await ear.until(AgentEvent.ENDED)
    assert left(tmp_path / "new") == ["1-1", "1-1/sub", "1-1/sub/file"]
    assert [end for _, end in dial.dialled] == ["receive"]


async def test_a_server_that_never_answers_takes_its_copy_with_it(
    tmp_path: Path,
) -> None:
    """The files are where they were; a copy that nobody used would only be in the way."""
    stream = parts(a_folder(tmp_path / "old"))
    driver = Keeping(tmp_path / "new", fails=True)
    async with an_agent(tmp_path, driver, Dialled(Pipe(stream))) as (agent, ear):
        agent.receive(a_launch())
        report = await ear.until(*ENDS)
    assert report.event is AgentEvent.FAILED
    assert driver.started == ["one"]
    assert left(tmp_path / "new") == []


async def test_a_hostile_copy_fails_the_start_before_it(tmp_path: Path) -> None:
    """With its own reason, and nothing was started."""
    driver = Keeping(tmp_path / "new")
    bad = Pipe(hostile(lambda w: w.enter(b"..")))
    async with an_agent(tmp_path, driver, Dialled(bad)) as (agent, ear):
        agent.receive(a_launch())
        report = await ear.until(*ENDS)
    assert report.explanation is not None
    assert report.explanation.reason is Reason.COPY_FAILED
    assert driver.started == []
    assert left(tmp_path / "new") == []


async def test_a_copy_has_no_more_time_than_the_preparation(tmp_path: Path) -> None:
    """What does not come ends the start, with its own reason."""
    driver = Keeping(tmp_path / "new")
    begun = Pipe([Writer().begin()])
    launch = a_launch(prepare_seconds=0.2)
    async with an_agent(tmp_path, driver, Dialled(begun)) as (agent, ear):
        agent.receive(launch)
        report = await ear.until(*ENDS)
    assert report.explanation is not None
    assert report.explanation.reason is Reason.COPY_TIMEOUT
    assert left(tmp_path / "new") == []


async def test_a_driver_without_files_begins_with_no_copy(tmp_path: Path) -> None:
    """It says so instead of starting without them."""
    driver = Building()
    async with an_agent(tmp_path, driver, Dialled()) as (agent, ear):
        agent.receive(a_launch())
        report = await ear.until(*ENDS)
    assert report.explanation is not None
    assert report.explanation.reason is Reason.COPY_FAILED
    assert driver.started == []


async def test_an_agent_that_comes_after_a_kill_goes_on_with_a_whole_copy(
    tmp_path: Path,
) -> None:
    """Halves are removed, what is whole is not fetched again."""
    stream = parts(a_folder(tmp_path / "old"))
    driver = Keeping(tmp_path / "new")
    never = asyncio.Event()

    class Hanging(Keeping):
        @override
        async def start(self, job: Job, progress: Any) -> AsyncIterator[Handle]:
            self.folders.ensure(job.spec.notebook, ME)
            yield Handle(allocation=job.allocation, data={})
            await never.wait()

    first = Hanging(tmp_path / "new")
    async with an_agent(tmp_path, first, Dialled(Pipe(stream))) as (agent, ear):
        agent.receive(a_launch())
        await ear.until(AgentEvent.PREPARED)
    (tmp_path / "new" / ".arriving" / "half").mkdir()
    async with an_agent(tmp_path, driver, Dialled()) as (agent, ear):
        assert not (tmp_path / "new" / ".arriving" / "half").exists()
        agent.receive(a_launch())
        assert (await ear.until(*ENDS)).event is AgentEvent.SERVING
    assert driver.started == ["one"]


async def test_an_order_to_send_is_carried_out(tmp_path: Path) -> None:
    """Through the line that the agent dials for it."""
    a_folder(tmp_path / "files", "1-1")
    pipe = Pipe()
    dial = Dialled(pipe)
    order = SendFiles(
        allocation="elsewhere",
        epoch=3,
        driver=DriverName.NATIVE,
        notebook="1-1",
        owner="olivia",
        owner_id=1,
        limit_bytes=1 << 30,
    )
    async with an_agent(tmp_path, Keeping(tmp_path / "files"), dial) as (agent, _):
        agent.receive(order)
        while not pipe.said:  # noqa: ASYNC110 - a pipe has no event for it
            await asyncio.sleep(0)
    assert [(key.allocation, key.epoch, end) for key, end in dial.dialled] == [
        ("elsewhere", 3, "send")
    ]
    assert pipe.is_closed
