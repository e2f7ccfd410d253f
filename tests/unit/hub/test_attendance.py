"""Starts of the Hub, attended: what each is told, and until when somebody attends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from fleet_controller import Fleet, a_ready_server, allocation_of, an_ask
from patience import PATIENCE

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.admission import Outcome, OutcomeKind, Update
from fleet_hub.controller import stopping
from fleet_hub.controller.attendance import Attendance


pytestmark = pytest.mark.asyncio
Messages = AsyncGenerator[Update | Outcome, None]


async def heard(messages: Messages) -> Update | Outcome:
    """Return the next message."""
    async with asyncio.timeout(PATIENCE):
        return await anext(messages)


async def outcome_of(messages: Messages) -> Outcome:
    """Return how a start went."""
    async with asyncio.timeout(PATIENCE):
        last = [message async for message in messages][-1]
    assert isinstance(last, Outcome)
    return last


async def test_a_workload_is_attended_until_the_last_of_its_starts_lets_go() -> None:
    """Two links of one server, say: a retry beside a start whose end is not known yet."""
    fleet = Fleet()
    first = Attendance(fleet.core, an_ask()).messages()
    await heard(first)
    [name] = fleet.core.model.workloads
    assert fleet.core.is_attended(name)
    second = Attendance(fleet.core, an_ask()).messages()
    await heard(second)
    await first.aclose()
    assert fleet.core.is_attended(name)
    await second.aclose()
    assert not fleet.core.is_attended(name)
    assert fleet.core.attended == {}


async def test_a_refused_start_says_why_and_leaves_nobody_attended() -> None:
    """A choice that is wrong, for a server that waits with a right one."""
    fleet = Fleet()
    record = fleet.ask(attended=False)
    messages = Attendance(fleet.core, an_ask(profile="no-such-profile")).messages()
    outcome = await outcome_of(messages)
    assert outcome.kind is OutcomeKind.REFUSED
    assert outcome.explanation is not None
    assert outcome.explanation.reason is Reason.PROFILE_UNKNOWN
    assert not fleet.core.is_attended(record.id)
    assert fleet.get(record).state is State.REFUSED


async def test_a_server_that_is_being_stopped_starts_again_once_it_is_over() -> None:
    """The new start waits for the machine's word, and asks only then."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    stopping.stop(fleet.core, record)
    messages = Attendance(fleet.core, an_ask(attempt="second")).messages()
    waits = asyncio.ensure_future(heard(messages))
    done, _ = await asyncio.wait([waits], timeout=0)
    assert not done
    assert fleet.get(record).generation == 1
    agent.report(allocation_of(record), AgentEvent.ENDED)
    assert isinstance(await waits, Update)
    assert fleet.get(record).generation == 2
    await messages.aclose()


async def test_a_server_that_has_stopped_starts_again_without_waiting() -> None:
    """Its end is over with."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    stopping.stop(fleet.core, record)
    agent.report(allocation_of(record), AgentEvent.ENDED)
    messages = Attendance(fleet.core, an_ask(attempt="second")).messages()
    assert isinstance(await heard(messages), Update)
    assert fleet.get(record).generation == 2
    await messages.aclose()


async def test_a_start_that_is_replaced_says_so() -> None:
    """Two starts of one server with different choices: the later one has it."""
    fleet = Fleet()
    messages = Attendance(fleet.core, an_ask(class_name="small")).messages()
    await heard(messages)
    fleet.ask(class_name="whole", attempt="second")
    outcome = await outcome_of(messages)
    assert outcome.kind is OutcomeKind.STOPPED
    assert "replaced" in outcome.headline


async def test_a_start_of_a_server_that_is_deleted_meanwhile_ends() -> None:
    """There is nothing left to follow."""
    fleet = Fleet()
    messages = Attendance(fleet.core, an_ask()).messages()
    await heard(messages)
    [record] = fleet.core.model.workloads.values()
    stopping.retire(fleet.core, record)
    assert (await outcome_of(messages)).kind is OutcomeKind.STOPPED


async def test_a_start_that_the_hub_lets_go_of_is_parked_in_the_line() -> None:
    """It says so as its outcome; one that holds something goes on."""
    fleet = Fleet()
    attendance = Attendance(fleet.core, an_ask())
    attendance.park()
    messages = attendance.messages()
    await heard(messages)
    attendance.park()
    outcome = await outcome_of(messages)
    assert outcome.kind is OutcomeKind.PARKED
    [record] = fleet.core.model.workloads.values()
    assert record.parked


async def test_every_entry_is_told_once_and_new_words_with_the_last_of_them() -> None:
    """When the line moves, the last entry comes again with the new place."""
    fleet = Fleet()
    fleet.machine()
    holder = fleet.ask(1, class_name="whole")
    ahead = fleet.ask(2, class_name="whole")
    messages = Attendance(fleet.core, an_ask(3, class_name="whole")).messages()
    fleet.cycle()
    told = [await heard(messages), await heard(messages)]
    fleet.cycle()
    seqs = [message.event.seq for message in told if isinstance(message, Update)]
    assert seqs == [1, 2]
    assert isinstance(told[-1], Update)
    assert told[-1].position == 1
    stopping.leave(fleet.core, fleet.get(ahead))
    fleet.cycle()
    moved = await heard(messages)
    assert isinstance(moved, Update)
    assert (moved.event.seq, moved.position) == (2, 0)
    assert moved.event.kind is TimelineKind.WAITING
    assert moved.headline != told[-1].headline
    fleet.agents["box"].report(allocation_of(holder), AgentEvent.FAILED)
    fleet.cycle()
    placed = await heard(messages)
    assert isinstance(placed, Update)
    assert (placed.event.seq, placed.event.kind) == (3, TimelineKind.PLACED)
    await messages.aclose()
