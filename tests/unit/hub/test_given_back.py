"""Giving back: turns that nobody comes for, servers that are deleted, machines lost."""

from __future__ import annotations

import asyncio

import pytest
from fleet_controller import (
    Fleet,
    ScriptedHub,
    a_ready_server,
    allocation_of,
    an_ask,
    kinds,
)
from typing_extensions import override

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import asking, stopping
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole
from fleet_hub.controller.claiming import Claims
from fleet_hub.controller.errors import RequestRefusedError, UnknownWorkloadError
from fleet_hub.controller.ports import StartAnswer, StartResult
from fleet_hub.controller.records import Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.controller.ticking import tick


ROOT = Actor(name="root", role=ActorRole.ADMIN, why="it burnt down")


def a_turn(fleet: Fleet) -> Workload:
    """Return a workload whose turn has come while nobody attended."""
    record = fleet.ask(attended=False, class_name="whole")
    assert record.state is State.PLACED
    return record


def answered(fleet: Fleet, record: Workload, answer: StartAnswer) -> Claims:
    """Let the Hub answer the wish to start *record*."""
    claims = Claims(fleet.core)
    claims.answered(record.id, StartResult(answer=answer))
    return claims


@pytest.mark.parametrize("how", ["leave", "stop"])
def test_a_turn_that_nobody_claimed_is_given_back_at_once(how: str) -> None:
    """No machine was told of it, so none has to confirm its end."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_turn(fleet)
    if how == "leave":
        stopping.leave(fleet.core, record)
    else:
        stopping.stop(fleet.core, record)
    ended = fleet.get(record)
    assert ended.state is State.STOPPED
    assert not ended.holds
    assert agent.stops() == []
    assert fleet.core.model.issued == {}
    last = fleet.store.events(record.id)[-1]
    assert (last.kind, last.actor) == (TimelineKind.STOPPED, "user")


def test_leaving_on_a_page_is_in_the_audit_log_with_whose_server_it_was() -> None:
    """An admin may do it for somebody else."""
    fleet = Fleet()
    record = fleet.ask(2)
    stopping.leave(fleet.core, record, actor="admin", by=ROOT)
    [row] = fleet.store.audit(target=record.id)
    entry = row.entry
    assert (entry.actor, entry.action) == ("root", Action.LEFT_THE_LINE)
    assert entry.detail == "alice/server-2"
    assert entry.why == "it burnt down"


def test_what_is_ready_says_what_to_do_instead_of_leaving() -> None:
    """The refusal has the remedy in it."""
    fleet = Fleet()
    record = a_ready_server(fleet, fleet.machine())
    with pytest.raises(RequestRefusedError) as refused:
        stopping.leave(fleet.core, record)
    assert refused.value.explanation.detail is not None
    assert "stop it" in refused.value.explanation.detail


def test_a_deleted_server_that_runs_is_stopped() -> None:
    """The Hub deletes a server whose notebook still runs on a machine."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    stopping.retire(fleet.core, record)
    assert [stop.allocation for stop in agent.stops()] == [allocation_of(record)]
    assert fleet.get(record).state is State.STOPPING


def test_a_parked_start_says_that_its_place_is_kept() -> None:
    """The timeline names the Hub, which let go, and not the user, who did nothing."""
    fleet = Fleet()
    record = fleet.ask()
    stopping.park(fleet.core, record.id)
    last = fleet.store.events(record.id)[-1]
    assert (last.kind, last.actor) == (TimelineKind.PARKED, "hub")
    assert last.explanation is not None
    assert last.explanation.reason is Reason.PLACE_KEPT
    assert not stopping.park(fleet.core, "unheard-of")


def test_a_lost_machine_is_named_in_what_it_ends_and_in_the_log() -> None:
    """With who said so, and why."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    stopping.declare_lost(fleet.core, "box", actor=ROOT)
    ended = fleet.get(record)
    assert ended.state is State.FAILED
    assert ended.explanation is not None
    told = (ended.explanation.reason, ended.explanation.machine)
    assert told == (Reason.MACHINE_LOST, "box")
    assert fleet.store.events(record.id)[-1].actor == "admin"
    log = [(row.entry.action, row.entry.why) for row in fleet.store.audit(target="box")]
    assert (Action.DECLARED_LOST, "it burnt down") in log
    with pytest.raises(UnknownWorkloadError):
        stopping.declare_lost(fleet.core, "no-such-machine")


def test_a_turn_on_a_machine_that_is_declared_lost_keeps_its_place() -> None:
    """Nothing of it ever ran: it is the machine that is gone, not the wish."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_turn(fleet)
    agent.disconnect()
    stopping.declare_lost(fleet.core, "box")
    back = fleet.get(record)
    assert (back.state, back.line) == (State.QUEUED, record.line)
    assert fleet.core.model.issued == {}
    fleet.machine("other")
    assert fleet.get(record).state is State.PLACED


def test_only_the_machine_that_is_lost_loses_what_it_ran() -> None:
    """What runs elsewhere is untouched."""
    fleet = Fleet()
    first, second = fleet.machine("one"), fleet.machine("two")
    records = [fleet.ask(server, class_name="whole") for server in (1, 2)]
    for record in records:
        assert record.assignment is not None
        fleet.agents[record.assignment.machine].serve(allocation_of(record))
    first.disconnect()
    stopping.declare_lost(fleet.core, "one")
    states = {
        record.assignment.machine: fleet.get(record).state
        for record in records
        if record.assignment is not None
    }
    assert states == {"one": State.FAILED, "two": State.READY}
    assert second.stops() == []


@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        (StartAnswer.STARTED, True),
        (StartAnswer.UNDER_WAY, True),
        (StartAnswer.REFUSED, True),
        (StartAnswer.LATER, False),
        (StartAnswer.FORBIDDEN, False),
        (StartAnswer.UNREACHABLE, False),
    ],
)
def test_the_time_to_come_runs_only_once_the_hub_can_be_expected(
    answer: StartAnswer,
    runs: bool,
) -> None:
    """While the Hub is away, or may not be asked, nobody is late."""
    fleet = Fleet()
    fleet.machine()
    record = a_turn(fleet)
    answered(fleet, record, answer)
    fleet.clock.advance(121)
    tick(fleet.core)
    assert fleet.get(record).holds is not runs


def test_the_time_to_come_is_not_begun_anew_by_each_answer() -> None:
    """A Hub that says "under way" every half minute holds no place for ever."""
    fleet = Fleet()
    fleet.machine()
    record = a_turn(fleet)
    for _ in range(4):
        answered(fleet, record, StartAnswer.UNDER_WAY)
        fleet.clock.advance(30)
    tick(fleet.core)
    assert fleet.get(record).state is State.STOPPED


def test_a_start_that_somebody_attends_is_not_asked_of_the_hub() -> None:
    """It has come already."""
    fleet = Fleet()
    fleet.machine()
    record = a_turn(fleet)
    claims = Claims(fleet.core)
    assert [one.id for one in claims.due()] == [record.id]
    with fleet.attending(record.id):
        assert claims.due() == []


def test_an_answer_that_comes_too_late_changes_nothing() -> None:
    """The start has come meanwhile, or the workload is gone."""
    fleet = Fleet()
    fleet.machine()
    record = a_turn(fleet)
    asking.ask(fleet.core, an_ask(attempt="second", class_name="whole"))
    claimed = fleet.get(record)
    answered(fleet, record, StartAnswer.GONE)
    answered(fleet, record, StartAnswer.UNDER_WAY)
    assert fleet.get(record) == claimed
    Claims(fleet.core).answered("gone", StartResult(answer=StartAnswer.GONE))


def test_a_turn_of_a_deleted_server_ends_by_the_hubs_word() -> None:
    """The Hub was asked to start what it does not have any more."""
    fleet = Fleet()
    fleet.machine()
    record = a_turn(fleet)
    claims = answered(fleet, record, StartAnswer.GONE)
    last = fleet.store.events(record.id)[-1]
    assert (last.kind, last.actor) == (TimelineKind.STOPPED, "hub")
    assert last.explanation is not None
    assert last.explanation.reason is Reason.RETIRED
    assert claims.due() == []


class AwaitedHub(ScriptedHub):
    """A Hub that answers at once, and lets a test wait for its being asked."""

    def __init__(self) -> None:
        """Begin unasked."""
        super().__init__()
        self.asked: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    @override
    async def start_server(self, user: str, server_name: str) -> StartResult:
        self.asked.put_nowait((user, server_name))
        return await super().start_server(user, server_name)


@pytest.mark.asyncio
async def test_the_hub_is_asked_once_at_a_time_for_the_server_by_its_name() -> None:
    """And again when the time for the next try has come."""
    fleet = Fleet()
    fleet.machine()
    fleet.core.hub = hub = AwaitedHub()
    record = fleet.ask(2, attended=False)
    claims = Claims(fleet.core)
    claims.ask_hub()
    claims.ask_hub()
    assert claims.due() == []
    assert await hub.asked.get() == ("alice", "server-2")
    assignment = fleet.get(record).assignment
    assert assignment is not None
    assert assignment.claim_by is not None
    claims.ask_hub()
    fleet.clock.advance(30)
    claims.ask_hub()
    assert await hub.asked.get() == ("alice", "server-2")
    assert hub.started == [("alice", "server-2")] * 2
    await claims.close()


def test_a_silent_machine_is_named_where_its_work_is_unknown() -> None:
    """Once; and whoever waits for it is looked at again."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    fleet.clock.advance(29.5)
    tick(fleet.core)
    fleet.cycle()
    assert fleet.get(record).state is State.READY
    fleet.clock.advance(0.5)
    tick(fleet.core)
    assert fleet.core.wanted
    last = fleet.store.events(record.id)[-1]
    assert last.kind is TimelineKind.SILENT
    assert last.explanation is not None
    told = (last.explanation.reason, last.explanation.machine)
    assert told == (Reason.OFFLINE, "box")
    fleet.cycle()
    fleet.clock.advance(100)
    tick(fleet.core)
    assert not fleet.core.wanted
    assert kinds(fleet, record).count(TimelineKind.SILENT) == 1


def test_who_waits_is_looked_at_again_when_an_idle_machine_falls_silent() -> None:
    """Nothing ran there, and yet others may have been promised it."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.disconnect()
    fleet.cycle()
    fleet.clock.advance(30)
    tick(fleet.core)
    assert fleet.core.wanted


def test_still_starting_ends_as_a_reason_at_the_very_moment() -> None:
    """Nobody is told for ever that the controller is still starting."""
    fleet = Fleet(settings=Settings(recovery_seconds=10, silence_seconds=60))
    fleet.machine()
    again = fleet.restarted()
    record = again.ask()
    fleet.clock.advance(9.5)
    tick(again.core)
    assert not again.core.wanted
    fleet.clock.advance(0.5)
    tick(again.core)
    assert again.core.wanted
    again.cycle()
    explanation = again.get(record).explanation
    assert explanation is not None
    assert explanation.reason is Reason.OFFLINE
    tick(again.core)
    assert not again.core.wanted, "it is over once"


def test_a_claim_that_is_due_ends_at_the_very_moment() -> None:
    """Its window is as long as the settings say, and no tick longer."""
    fleet = Fleet()
    fleet.machine()
    record = a_turn(fleet)
    answered(fleet, record, StartAnswer.UNDER_WAY)
    fleet.clock.advance(fleet.core.settings.claim_seconds)
    tick(fleet.core)
    assert fleet.get(record).state is State.STOPPED


def test_a_machine_that_rested_is_tried_again_by_whoever_still_waits() -> None:
    """Others that it rejected have ended, or have been elsewhere since."""
    fleet = Fleet()
    agent = fleet.machine()
    gone, waits = fleet.ask(1), fleet.ask(2)
    for record in (gone, waits):
        agent.report(allocation_of(record), AgentEvent.REJECTED)
    stopping.retire(fleet.core, fleet.get(gone))
    fleet.cycle()
    assert fleet.get(waits).state is State.QUEUED
    fleet.clock.advance(fleet.core.settings.rejection_rest_seconds)
    tick(fleet.core)
    fleet.cycle()
    assert fleet.get(waits).state is State.PLACED
