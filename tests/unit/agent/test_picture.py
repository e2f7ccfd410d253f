"""The agent's picture is told when it differs, and looked at again for a reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from patience import PATIENCE
from probe_machines import FIELDS_ROW, PretendMachine, a_pretend_machine, settings_for

from fleet_agent.picture import Picture
from fleet_agent.probes.observe import observe
from fleet_agent.probes.settings import Environment
from fleet_agent.probes.tools import ToolCall, ToolResult
from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    WorkerCapabilities,
)


pytestmark = pytest.mark.asyncio

EMPTY = json.dumps({"found": True, "metadata": []})


class Listener:
    """Hears of changed pictures."""

    def __init__(self) -> None:
        """Have heard nothing yet."""
        self.heard: asyncio.Queue[WorkerCapabilities] = asyncio.Queue()

    async def settled(self) -> WorkerCapabilities:
        """Return the next settled picture that is told."""
        async with asyncio.timeout(PATIENCE):
            while not (picture := await self.heard.get()).settled:
                pass
            return picture


@asynccontextmanager
async def a_running(
    machine: PretendMachine, **facts: object
) -> AsyncIterator[tuple[Picture, Listener]]:
    """Keep a picture of *machine* up to date, at long intervals."""
    listener = Listener()
    picture = Picture(
        settings=settings_for(machine, **facts),
        on_change=listener.heard.put_nowait,
        period_seconds=3600,
    )
    task = asyncio.create_task(picture.run())
    try:
        yield picture, listener
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_looking_again_tells_only_what_changed() -> None:
    """A card that was plugged in is told; a second look without news is not."""
    machine = a_pretend_machine()
    async with a_running(machine) as (picture, listener):
        assert (await listener.settled()).accelerators == ()
        machine.replies["nvidia-smi"] = FIELDS_ROW
        picture.look_again()
        assert len((await listener.settled()).accelerators) == 1

        machine.replies["nvidia-smi"] = FIELDS_ROW.replace("550.54.15", "570.86.10")
        picture.look_again()
        assert (await listener.settled()).accelerators[0].driver_version == "570.86.10"
        assert listener.heard.empty()


async def test_a_new_environment_is_looked_at_when_it_is_ready() -> None:
    """What torch can do in it is told without waiting for the next period."""
    built: list[Environment] = []

    async def find() -> tuple[Environment, ...]:
        return tuple(built)

    machine = a_pretend_machine(package_readings=EMPTY)
    async with a_running(machine, find_environments=find) as (picture, listener):
        assert (await listener.settled()).torch == ()
        asked = machine.times("nvidia-smi")
        await picture.notice_environments()
        assert machine.times("nvidia-smi") == asked

        built.append(Environment(ref="jupyter", interpreter="/env/bin/python"))
        await picture.notice_environments()
        told = await listener.settled()
        assert [facts.environment for facts in told.torch] == ["jupyter"]


async def test_environments_that_cannot_be_found_disturb_nothing() -> None:
    """A fault in looking for them ends neither the picture nor the agent."""

    async def find() -> tuple[Environment, ...]:
        raise OSError("the lock file is gone")

    async with a_running(a_pretend_machine(), find_environments=find) as (
        picture,
        listener,
    ):
        await listener.settled()
        await picture.notice_environments()
        assert picture.latest.settled


def a_card(*, healthy: bool | None = True) -> WorkerCapabilities:
    """Return a picture with one NVIDIA card."""
    card = AcceleratorDevice(
        accelerator=DeviceKind.CUDA, vendor="NVIDIA", healthy=healthy
    )
    return WorkerCapabilities(accelerators=(card,))


async def test_an_observation_tells_free_memory_and_utilisation() -> None:
    """The host and each card say how busy they are, with the time."""
    machine = a_pretend_machine(nvidia_smi=FIELDS_ROW)
    usage = await observe(settings_for(machine), a_card())

    assert usage is not None
    assert usage.memory_available_bytes == 1 << 30
    assert usage.load_milli == 500
    assert usage.observed.source == "psutil, nvidia-smi"
    [device] = usage.devices
    assert (device.memory_free_mib, device.utilisation_percent) == (559, 97)


@pytest.mark.parametrize("picture", [WorkerCapabilities(), a_card(healthy=False)])
async def test_an_observation_starts_no_tool_for_cards_that_are_not_there(
    picture: WorkerCapabilities,
) -> None:
    """A machine without a working card is not asked about one each half minute."""
    machine = a_pretend_machine(nvidia_smi=FIELDS_ROW)
    usage = await observe(settings_for(machine), picture)

    assert usage is not None
    assert usage.devices == ()
    assert machine.times("nvidia-smi") == 0


async def test_a_machine_that_says_nothing_costs_only_the_observation() -> None:
    """Unknown stays unknown, and is no zero."""
    machine = a_pretend_machine(usage_readings="{", nvidia_smi="no such thing")
    usage = await observe(settings_for(machine), a_card())

    assert usage is not None
    assert usage.memory_available_bytes is None
    assert usage.devices == ()


async def test_observations_are_renewed_and_are_no_change() -> None:
    """The latest one is at hand for the next heartbeat, and nobody is told of a change."""
    loop, seen_thrice = asyncio.get_running_loop(), asyncio.Event()
    count = 0

    def busier(call: ToolCall) -> ToolResult:
        nonlocal count
        count += 1
        if count == 3:
            loop.call_soon_threadsafe(seen_thrice.set)
        return ToolResult(
            tool=call.tool,
            argv=call.argv,
            exit_code=0,
            stdout=json.dumps({"memory_available_bytes": count}),
        )

    listener = Listener()
    picture = Picture(
        settings=settings_for(a_pretend_machine(usage_readings=busier)),
        on_change=listener.heard.put_nowait,
        period_seconds=3600,
        observe_seconds=0.001,
    )
    assert picture.usage is None
    task = asyncio.create_task(picture.watch())
    async with asyncio.timeout(PATIENCE):
        await seen_thrice.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert picture.usage is not None
    assert (picture.usage.memory_available_bytes or 0) > 1
    assert listener.heard.empty()
