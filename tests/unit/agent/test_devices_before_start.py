"""Before anything starts on a GPU the agent looks at it once more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from agent_support import a_runtime, a_spec
from heard_agent import Building, Ear
from patience import PATIENCE
from probe_machines import FIELDS_ROW, PretendMachine, a_pretend_machine, settings_for
from typing_extensions import override

from fleet_agent.agent import Agent
from fleet_agent.ledger import Ledger
from fleet_agent.link import Link
from fleet_contracts.base import Message
from fleet_contracts.capabilities import Usage, WorkerCapabilities
from fleet_contracts.protocol import (
    AgentEvent,
    CapabilitiesChanged,
    Heartbeat,
    Launch,
    Report,
)
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Accelerator, DriverName, RefSource, Resources


pytestmark = pytest.mark.asyncio

A, B = (f"GPU-00000000-0000-0000-0000-00000000000{digit}" for digit in "12")
LIST = "nvidia-smi --query-compute-apps=gpu_uuid,used_memory"
ENDS = (AgentEvent.SERVING, AgentEvent.FAILED, AgentEvent.REJECTED)


def rows(*used: int) -> str:
    """Return what nvidia-smi says of cards of which so many MiB are used."""
    first = FIELDS_ROW.removeprefix("0, ").replace("559, 97", "559, 0")
    return "".join(
        f"{number}, " + first.replace(A, uuid).replace("81000", str(mib))
        for number, (uuid, mib) in enumerate(zip((A, B), used, strict=False))
    )


class Line(Ear):
    """A link that keeps everything in the order in which it was said."""

    def __init__(self) -> None:
        """Have heard nothing yet."""
        super().__init__()
        self.said: list[Message] = []
        self.pictures: asyncio.Queue[WorkerCapabilities] = asyncio.Queue()

    @override
    def send(self, message: Message) -> None:
        self.said.append(message)
        if isinstance(message, CapabilitiesChanged):
            picture = WorkerCapabilities.model_validate(message.capabilities)
            self.pictures.put_nowait(picture)
        super().send(message)

    async def settled(self) -> WorkerCapabilities:
        """Return the next settled picture that is told."""
        async with asyncio.timeout(PATIENCE):
            while not (picture := await self.pictures.get()).settled:
                pass
            return picture


@asynccontextmanager
async def an_agent(
    folder: Path, machine: PretendMachine
) -> AsyncIterator[tuple[Agent, Building, Line]]:
    """Run an agent that looks at nothing by itself, once it knows its machine."""
    driver, line, ledger = Building(), Line(), Ledger(folder / "ledger.sqlite")
    agent = Agent(
        ledger=ledger,
        drivers={DriverName.NATIVE: driver},
        owner="olivia",
        service_url="http://127.0.0.1:1/services/fleet/",
        detection=settings_for(machine),
        detect_seconds=3600,
        observe_seconds=3600,
    )
    running = asyncio.create_task(agent.run(cast("Link", line)))
    try:
        await line.settled()
        yield agent, driver, line
    finally:
        await agent.close(stop_workloads=False)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        ledger.close()


def a_launch(epoch: int = 1, *devices: str, **changes: Any) -> Launch:
    """Return the launch of a notebook on *devices*."""
    runtime = a_runtime(
        driver=DriverName.NATIVE,
        ref="pytorch",
        source=RefSource.DRIVER_REFS,
        accelerator=Accelerator.CUDA,
    )
    resources = Resources(cpu_milli=1000, memory_bytes=1 << 20, devices=devices or (A,))
    spec = a_spec(runtime=runtime, resources=resources, **changes)
    return Launch(allocation=f"no-{epoch}", epoch=epoch, spec=spec)


def a_machine(*used: int) -> PretendMachine:
    """Return a machine with cards of which so many MiB are used."""
    return a_pretend_machine(nvidia_smi=rows(*used), **{LIST: ""})


async def test_a_clean_gpu_is_looked_at_once_and_used(tmp_path: Path) -> None:
    """The look costs one question to nvidia-smi."""
    machine = a_machine(4, 4)
    async with an_agent(tmp_path, machine) as (agent, driver, line):
        asked = machine.times("nvidia-smi")
        agent.receive(a_launch())
        assert (await line.until(*ENDS)).event is AgentEvent.SERVING
        assert machine.times("nvidia-smi") == asked + 1
        assert driver.started == ["no-1"]


async def test_a_gpu_that_others_use_by_now_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    """Which device it is goes ahead of the refusal, so that only that one is avoided."""
    machine = a_machine(4, 4)
    async with an_agent(tmp_path, machine) as (agent, driver, line):
        machine.replies["nvidia-smi"] = rows(24_576, 4)
        machine.replies[LIST] = f"{A}, 24000 MiB\n"
        agent.receive(a_launch())
        report = await line.until(*ENDS)

        assert report.event is AgentEvent.REJECTED
        assert report.explanation is not None
        assert report.explanation.reason is Reason.FOREIGN_PROCESS
        assert report.explanation.free == (81_559 - 24_576) << 20
        assert driver.started == []
        before = line.said[line.said.index(report) - 1]
        assert isinstance(before, Heartbeat)
        usage = Usage.model_validate(before.usage)
        assert {device.uuid: device.foreign_mib for device in usage.devices} == {
            A: 24_576,
            B: None,
        }
        # The other card of this machine is as good as ever, and the used one is not.
        agent.receive(a_launch(2, B))
        assert (await line.until(*ENDS)).event is AgentEvent.SERVING
        agent.receive(a_launch(3, A))
        again = await line.until(*ENDS)
        assert again.event is AgentEvent.REJECTED
        assert driver.started == ["no-2"]


async def test_a_gpu_that_is_gone_is_refused_and_the_machine_looked_at_again(
    tmp_path: Path,
) -> None:
    """What is missing becomes known to everybody, as a device that does not work."""
    machine = a_machine(4, 4)
    async with an_agent(tmp_path, machine) as (agent, driver, line):
        machine.replies["nvidia-smi"] = rows(4)
        agent.receive(a_launch(1, A, B))
        report = await line.until(*ENDS)
        picture = await line.settled()

    assert report.event is AgentEvent.REJECTED
    assert report.explanation is not None
    assert report.explanation.reason is Reason.DEVICE_LOST
    assert report.explanation.free == 1
    assert driver.started == []
    assert [(card.uuid, card.healthy) for card in picture.accelerators] == [
        (A, True),
        (B, False),
    ]


async def test_a_tool_that_does_not_answer_is_no_reason_against_a_gpu(
    tmp_path: Path,
) -> None:
    """Nobody knows who uses it: that is neither nobody nor somebody."""
    machine = a_machine(4, 4)
    async with an_agent(tmp_path, machine) as (agent, driver, line):
        del machine.replies["nvidia-smi"]
        agent.receive(a_launch())
        assert (await line.until(*ENDS)).event is AgentEvent.SERVING
        assert driver.started == ["no-1"]


async def test_what_an_agent_says_first_holds_what_it_knows_of_others(
    tmp_path: Path,
) -> None:
    """The hello of a new link, like each heartbeat."""
    machine = a_machine(4, 4)
    async with an_agent(tmp_path, machine) as (agent, _, line):
        machine.replies["nvidia-smi"] = rows(24_576, 4)
        agent.receive(a_launch())
        await line.until(*ENDS)
        hello = WorkerCapabilities.model_validate(agent.hello().capabilities)
    assert hello.usage is not None
    assert [device.foreign_mib for device in hello.usage.devices] == [24_576, None]


def of_kind(line: Line, kind: type[Message]) -> list[Message]:
    """Return what was said of one kind."""
    return [message for message in line.said if isinstance(message, kind)]


async def test_work_without_a_gpu_asks_nothing_of_it(tmp_path: Path) -> None:
    """Not even where nvidia-smi hangs."""
    machine = a_machine(4, 4)
    async with an_agent(tmp_path, machine) as (agent, driver, line):
        asked = machine.times("nvidia-smi")
        launch = a_launch()
        runtime = launch.spec.runtime.model_copy(
            update={"accelerator": Accelerator.CPU}
        )
        spec = launch.spec.model_copy(
            update={
                "runtime": runtime,
                "resources": Resources(cpu_milli=1000, memory_bytes=1 << 20),
            }
        )
        agent.receive(launch.model_copy(update={"spec": spec}))
        assert (await line.until(*ENDS)).event is AgentEvent.SERVING
        assert machine.times("nvidia-smi") == asked
        assert driver.started == ["no-1"]
        assert of_kind(line, Report)
