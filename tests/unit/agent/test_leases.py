"""Being cut off ends what asked for it, after its time, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from agent_support import a_spec
from patience import PATIENCE

from fleet_agent.leases import Leases
from fleet_agent.ledger_entry import Entry, Key
from fleet_contracts.protocol import AgentEvent


pytestmark = pytest.mark.asyncio

KEPT, LEASED, OVER = Key("kept", 1), Key("leased", 2), Key("over", 3)


class Machine:
    """A ledger with one workload of each kind, and a clock."""

    def __init__(self, path: Path) -> None:
        """It is noon, and nothing has ended."""
        self.path = path
        self.now = 1_000_000.0
        self.ended: asyncio.Queue[Key] = asyncio.Queue()

    def entries(self) -> list[Entry]:
        """Return what the ledger holds."""
        serving, ended = AgentEvent.SERVING, AgentEvent.ENDED
        leased = a_spec(lease_seconds=600)
        return [
            Entry(key=KEPT, event=serving, seq=1, spec=a_spec()),
            Entry(key=LEASED, event=serving, seq=1, spec=leased),
            Entry(key=OVER, event=ended, seq=1, spec=leased),
            Entry(key=Key("unseen", 4), event=serving, seq=1, spec=None),
        ]

    def leases(self) -> Leases:
        """Return what a new agent makes of it."""
        return Leases(
            path=self.path,
            entries=self.entries,
            end=self.ended.put_nowait,
            clock=lambda: self.now,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine whose agent has not started."""
    return Machine(tmp_path / "cut-off")


@asynccontextmanager
async def running(leases: Leases) -> AsyncIterator[Leases]:
    """Let *leases* watch."""
    task = asyncio.create_task(leases.run())
    try:
        yield leases
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def everything_that_is_due(machine: Machine) -> list[Key]:
    """Return what has been ended; nothing here waits for more turns than these."""
    for _ in range(20):
        await asyncio.sleep(0)
    return [machine.ended.get_nowait() for _ in range(machine.ended.qsize())]


async def test_what_asked_for_it_ends_after_its_time_and_once(machine: Machine) -> None:
    """What did not ask for it runs on, however long nobody is heard."""
    async with running(machine.leases()) as leases:
        leases.heard()
        leases.lost()
        machine.now += 599
        leases.lost()
        assert await everything_that_is_due(machine) == []
        machine.now += 1
        leases.lost()
        async with asyncio.timeout(PATIENCE):
            assert await machine.ended.get() == LEASED
        leases.lost()
        assert await everything_that_is_due(machine) == []


async def test_whoever_is_heard_in_time_ends_nothing(machine: Machine) -> None:
    """Being cut off again begins anew."""
    async with running(machine.leases()) as leases:
        for _ in range(3):
            leases.lost()
            machine.now += 500
            leases.heard()
        machine.now += 10_000
        assert await everything_that_is_due(machine) == []


async def test_a_restart_of_the_agent_does_not_begin_anew(machine: Machine) -> None:
    """Since when nobody was heard is on the disk, and gone when somebody is."""
    machine.leases()
    machine.now += 600
    async with running(machine.leases()) as leases:
        async with asyncio.timeout(PATIENCE):
            assert await machine.ended.get() == LEASED
        leases.heard()
        assert not machine.path.exists()


@pytest.mark.parametrize("written", ["", "soon", "2000000.0"])
async def test_a_time_that_cannot_be_is_none(machine: Machine, written: str) -> None:
    """Damaged, or of a clock that was set back since: it counts from now on."""
    machine.path.write_text(written)
    async with running(machine.leases()):
        assert await everything_that_is_due(machine) == []
    assert float(machine.path.read_text()) == machine.now


async def test_without_a_place_to_remember_it_still_counts(machine: Machine) -> None:
    """A full disk costs a restart's memory, and nothing else."""
    machine.path = machine.path / "under" / "nothing"
    async with running(machine.leases()) as leases:
        machine.now += 600
        leases.lost()
        async with asyncio.timeout(PATIENCE):
            assert await machine.ended.get() == LEASED
