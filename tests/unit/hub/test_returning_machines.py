"""Machines that come back: what was lost on the way is said again, and said once."""

from __future__ import annotations

import pytest
from controller_machine import LIMITED
from fake_agent import FakeAgent, some_capabilities
from fleet_builders import NOON
from fleet_controller import Fleet, a_ready_server, allocation_of, kinds

from fleet_contracts.allocations import State
from fleet_contracts.protocol import (
    AgentEvent,
    Heartbeat,
    Inventory,
    InventoryItem,
    Launch,
    Report,
    Welcome,
)
from fleet_contracts.reasons import Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import stopping
from fleet_hub.controller.reconciling import MOST_ALLOCATIONS
from fleet_hub.controller.records import Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.controller.ticking import tick


def launches(agent: FakeAgent) -> list[Launch]:
    """Return the launches that an agent was told."""
    return [message for message in agent.heard if isinstance(message, Launch)]


def falls_silent(fleet: Fleet, agent: FakeAgent) -> None:
    """Cut the link for longer than a machine may be silent."""
    agent.disconnect()
    fleet.clock.advance(31)
    tick(fleet.core)


def an_unheard_launch(fleet: Fleet, agent: FakeAgent) -> Workload:
    """Return a workload whose launch was lost with the link."""
    record = fleet.ask(class_name="whole")
    agent.disconnect()
    agent.heard.clear()
    return record


def test_a_machine_that_is_silent_twice_is_told_of_twice() -> None:
    """Each absence is one of its own, and frees as little as the first one."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    for _ in range(2):
        falls_silent(fleet, agent)
        assert fleet.get(record).state is State.UNKNOWN
        agent.connect()
        assert fleet.get(record).state is State.READY
    assert (
        kinds(fleet, record)[-4:]
        == [
            TimelineKind.SILENT,
            TimelineKind.RETURNED,
        ]
        * 2
    )


def test_a_server_that_became_ready_during_the_silence_is_ready_with_its_address() -> (
    None
):
    """Its start went on while nobody listened; it is a ready server like any other."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask(class_name="whole")
    agent.report(allocation_of(record), AgentEvent.ACCEPTED)
    falls_silent(fleet, agent)
    agent.serve(allocation_of(record))
    agent.connect()
    agent.say(Heartbeat(sent_at=NOON))
    ready = fleet.get(record)
    assert ready.state is State.READY
    assert ready.url == f"http://127.0.0.1:5000/{allocation_of(record)}/"
    assert ready.ready_at == fleet.clock.now()
    assert ready.home is not None
    assert ready.home.machine == "box"
    assert fleet.store.secrets(record.id) is None
    assert kinds(fleet, record)[-2:] == [TimelineKind.RETURNED, TimelineKind.READY]


def test_a_launch_that_nobody_heard_before_the_silence_is_told_again() -> None:
    """It is where it was, placed, and starts with the order that was lost."""
    fleet = Fleet()
    agent = fleet.machine()
    record = an_unheard_launch(fleet, agent)
    fleet.clock.advance(31)
    tick(fleet.core)
    assert fleet.get(record).state is State.UNKNOWN
    agent.connect()
    assert fleet.get(record).state is State.PLACED
    assert kinds(fleet, record)[-2:] == [TimelineKind.SILENT, TimelineKind.RETURNED]
    [launch] = launches(agent)
    assert launch.allocation == allocation_of(record)
    agent.serve(launch.allocation)
    assert fleet.get(record).state is State.READY


def test_a_short_absence_before_the_first_word_returns_nobody() -> None:
    """The launch is told again; the timeline knows of no silence, and of no return."""
    fleet = Fleet()
    agent = fleet.machine()
    record = an_unheard_launch(fleet, agent)
    agent.connect()
    assert len(launches(agent)) == 1
    assert kinds(fleet, record)[-1] is TimelineKind.PLACED


def test_a_stop_of_a_launch_that_nobody_heard_is_told_when_the_machine_is_back() -> (
    None
):
    """Nothing of it may begin later; the machine says so, and only then it is free."""
    fleet = Fleet()
    agent = fleet.machine()
    record = an_unheard_launch(fleet, agent)
    stopping.stop(fleet.core, fleet.get(record))
    assert fleet.get(record).state is State.STOPPING
    agent.connect()
    assert launches(agent) == []
    [stop] = agent.stops()
    assert stop.allocation == allocation_of(record)
    assert fleet.get(record).state is State.STOPPED


def test_a_stop_is_told_at_once_though_reports_are_still_on_their_way() -> None:
    """The machine is further than was known; its end does not wait for its reports."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask(class_name="whole")
    agent.disconnect()
    agent.launched[allocation_of(record)] = launches(agent)[-1]
    agent.serve(allocation_of(record))
    stopping.stop(fleet.core, fleet.get(record))
    agent.connect()
    assert [stop.allocation for stop in agent.stops()] == [allocation_of(record)]
    assert fleet.get(record).state is State.STOPPING


def test_a_turn_that_nobody_has_claimed_is_not_launched_by_a_link_that_returns() -> (
    None
):
    """Nobody attends it, and its token may be void by the time when somebody does."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask(attended=False)
    assert record.state is State.PLACED
    agent.disconnect()
    agent.connect()
    assert launches(agent) == []
    assert fleet.get(record) == record


def test_reports_behind_an_inventory_tell_when_it_happened() -> None:
    """The inventory knows only how far it is; the reports say when it got there."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    allocation = allocation_of(record)
    agent.report(allocation, AgentEvent.ACCEPTED)
    agent.disconnect()
    agent.report(allocation, AgentEvent.PREPARED)
    owed = Report(
        allocation=allocation,
        epoch=agent.launched[allocation].epoch,
        seq=agent.ledger[allocation].seq,
        at=fleet.clock.now(),
        event=AgentEvent.PREPARED,
    )
    fleet.clock.advance(20)
    agent.connect()
    agent.say(owed)
    agent.say(Heartbeat(sent_at=NOON))
    entry = fleet.store.events(record.id)[-1]
    assert (entry.kind, entry.at) == (TimelineKind.STARTING, owed.at)


def test_an_end_that_is_reported_before_the_first_heartbeat_is_the_last_word() -> None:
    """What the inventory said before it is over with it."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    allocation = allocation_of(record)
    agent.report(allocation, AgentEvent.ACCEPTED)
    agent.disconnect()
    agent.report(allocation, AgentEvent.PREPARED)
    agent.connect()
    agent.report(allocation, AgentEvent.FAILED)
    agent.say(Heartbeat(sent_at=NOON))
    assert fleet.get(record).state is State.FAILED
    assert kinds(fleet, record)[-1] is TimelineKind.FAILED


def test_what_ended_for_us_and_is_gone_there_holds_nothing_any_more() -> None:
    """A machine that was declared lost may come back twice: first with it, then not."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    stopping.declare_lost(fleet.core, "box")
    agent.connect()
    waiting = fleet.ask(2, class_name="whole")
    assert fleet.get(waiting).state is State.QUEUED
    agent.disconnect()
    agent.ledger.pop(allocation_of(record))
    agent.connect()
    fleet.cycle()
    assert fleet.get(waiting).state is State.PLACED
    assert record.assignment is not None
    assert record.assignment.allocation not in fleet.core.model.issued
    assert {row.allocation for row in fleet.store.load().issued} == {
        allocation_of(fleet.get(waiting))
    }


def test_the_inventory_of_one_machine_says_nothing_of_another() -> None:
    """What ended on a machine that is away is remembered until that machine speaks."""
    fleet = Fleet()
    agent = fleet.machine()
    other = fleet.machine("other")
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    stopping.declare_lost(fleet.core, "box")
    other.disconnect()
    other.connect()
    assert allocation_of(record) in fleet.core.model.issued
    agent.connect()
    assert [stop.allocation for stop in agent.stops()] == [allocation_of(record)]


@pytest.mark.parametrize("event", [AgentEvent.ENDED, AgentEvent.SERVING])
def test_a_machine_cannot_say_what_another_one_has_ended_or_still_runs(
    event: AgentEvent,
) -> None:
    """By the right number of the order even: it is foreign, and frees or holds nothing."""
    fleet = Fleet()
    agent = fleet.machine()
    other = fleet.machine("other")
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    stopping.declare_lost(fleet.core, "box")
    claimed = agent.ledger[allocation_of(record)].model_copy(update={"event": event})
    other.disconnect()
    other.connect(inventory=False)
    other.say(Inventory(items=(claimed,), last=True))
    presence = fleet.core.model.presence["other"]
    assert presence.foreign == {(claimed.allocation, claimed.epoch)}
    assert presence.leftovers == set()
    assert other.stops() == []
    assert claimed.allocation in fleet.core.model.issued
    agent.connect()
    assert [stop.allocation for stop in agent.stops()] == [claimed.allocation]


def test_a_ledger_that_is_lost_is_told_once() -> None:
    """Every link of that machine finds it missing; it is news only the first time."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.ledger.clear()
    agent.ledger_id = "ledger-2"
    for _ in range(3):
        agent.disconnect()
        agent.connect()
    silent = [
        event
        for event in fleet.store.events(record.id)
        if event.kind is TimelineKind.SILENT
    ]
    [told] = silent
    assert told.explanation is not None
    assert told.explanation.reason is Reason.LEDGER_LOST
    assert told.explanation.machine == "box"


def test_the_end_by_a_reboot_names_the_machine() -> None:
    """Whoever has several servers sees which machine was started anew."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    agent.ledger.clear()
    agent.boot_id = "boot-2"
    agent.connect()
    explanation = fleet.get(record).explanation
    assert explanation is not None
    assert explanation.machine == "box"


def test_who_waits_is_looked_at_anew_when_a_link_breaks() -> None:
    """The answer has become another one: what was free is away now."""
    fleet = Fleet()
    agent = fleet.machine()
    fleet.cycle()
    assert not fleet.core.wanted
    agent.disconnect()
    assert fleet.core.wanted


def test_what_a_machine_last_said_of_itself_outlives_the_controller() -> None:
    """It is shown while the machine is away, and in an exported state."""
    fleet = Fleet()
    fleet.machine(capabilities=some_capabilities(cores=12))
    again = fleet.restarted()
    known = again.core.model.machines["box"].capabilities
    assert known["host"]["cores_allowed_milli"]["value"] == 12_000


def test_a_place_on_a_machine_that_is_away_outlives_every_restart() -> None:
    """Each run that meets it away says what was said, and says so to the next one."""
    fleet = Fleet(catalog=LIMITED)
    for server, name in enumerate(("early", "late"), start=1):
        agent = fleet.machine(name)
        agent.serve(allocation_of(fleet.ask(server, class_name="whole")))
        fleet.clock.advance(600)
    promised = fleet.ask(3, class_name="whole")
    assert promised.reservation is not None
    assert promised.reservation.machine == "early"
    for _ in range(3):
        fleet = fleet.restarted()
        fleet.agents["late"].connect()
        fleet.cycle()
        found = fleet.get(promised)
        assert (found.promise, found.reservation) == (
            promised.promise,
            promised.reservation,
        )
    fleet.agents["early"].connect()
    fleet.cycle()
    assert fleet.get(promised).reservation == promised.reservation
    assert TimelineKind.NOTE not in kinds(fleet, promised)


@pytest.mark.parametrize("seconds", [5.0, 17.0])
def test_a_machine_is_told_how_often_it_has_to_be_heard(seconds: float) -> None:
    """Its welcome says so, as the controller is configured."""
    fleet = Fleet(settings=Settings(heartbeat_seconds=seconds))
    agent = fleet.machine()
    [welcome] = [item for item in agent.heard if isinstance(item, Welcome)]
    assert welcome.heartbeat_seconds == seconds


def test_a_foreign_allocation_is_noted_once_and_not_without_end() -> None:
    """A machine that makes things up fills no memory of the controller."""
    fleet = Fleet()
    agent = fleet.machine()
    presence = fleet.core.model.presence["box"]
    foreign = InventoryItem(
        allocation="not-ours", epoch=7, event=AgentEvent.SERVING, seq=1
    )
    agent.say(Inventory(items=(foreign,), last=True))
    agent.say(Inventory(items=(foreign,), last=True))
    assert presence.foreign == {("not-ours", 7)}
    presence.foreign |= {(f"made-up-{count}", 1) for count in range(MOST_ALLOCATIONS)}
    most = set(presence.foreign)
    agent.say(
        Report(allocation="x", epoch=1, seq=1, at=NOON, event=AgentEvent.ACCEPTED)
    )
    assert presence.foreign == most
