"""The agent's picture is told when it differs, and looked at again for a reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from probe_machines import FIELDS_ROW, PretendMachine, a_pretend_machine, settings_for

from fleet_agent.picture import Picture
from fleet_agent.probes.settings import Environment
from fleet_contracts.capabilities import WorkerCapabilities


pytestmark = pytest.mark.asyncio

EMPTY = json.dumps({"found": True, "metadata": []})


class Listener:
    """Hears of changed pictures."""

    def __init__(self) -> None:
        """Have heard nothing yet."""
        self.heard: asyncio.Queue[WorkerCapabilities] = asyncio.Queue()

    async def settled(self) -> WorkerCapabilities:
        """Return the next settled picture that is told."""
        async with asyncio.timeout(15):
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
