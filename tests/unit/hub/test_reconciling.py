"""What a machine says of itself against what it was told: silence, restarts, lies."""

from __future__ import annotations

from fleet_builders import NOON
from fleet_controller import (
    Fleet,
    a_ready_server,
    allocation_of,
    kinds,
)

from fleet_contracts.allocations import State
from fleet_contracts.protocol import (
    Acknowledge,
    AgentEvent,
    Heartbeat,
    Inventory,
    Launch,
    Report,
)
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import stopping
from fleet_hub.controller.ticking import tick


def test_silence_marks_as_unknown_and_frees_nothing() -> None:
    """However long it lasts, nobody else gets the machine."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    waiting = fleet.ask(2, class_name="whole")
    agent.disconnect()
    for seconds in (31, 3600, 30 * 24 * 3600):
        fleet.clock.advance(seconds)
        tick(fleet.core)
        fleet.cycle()
        assert fleet.get(record).state is State.UNKNOWN
        assert fleet.get(record).holds
        assert fleet.get(waiting).state is State.QUEUED
    assert kinds(fleet, record).count(TimelineKind.SILENT) == 1


def test_a_short_absence_is_not_told() -> None:
    """A link that comes back within the limit leaves no trace in the timeline."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    fleet.clock.advance(5)
    tick(fleet.core)
    agent.connect()
    assert fleet.get(record).state is State.READY
    assert TimelineKind.SILENT not in kinds(fleet, record)


def test_a_machine_that_returns_finds_its_servers_again() -> None:
    """The same server, at the same address, ready as before."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    fleet.clock.advance(31)
    tick(fleet.core)
    agent.connect()
    again = fleet.get(record)
    assert (again.state, again.url) == (State.READY, record.url)
    assert again.ready_at == record.ready_at
    assert kinds(fleet, record)[-2:] == [TimelineKind.SILENT, TimelineKind.RETURNED]


def test_an_end_during_the_silence_is_learned_from_the_inventory() -> None:
    """The notebook ended while nobody listened; the place is free when it is told."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    fleet.clock.advance(31)
    tick(fleet.core)
    agent.report(
        allocation_of(record),
        AgentEvent.FAILED,
        explanation=Explanation(reason=Reason.OUT_OF_MEMORY),
    )
    agent.connect()
    agent.say(Heartbeat(sent_at=NOON))
    ended = fleet.get(record)
    assert ended.state is State.FAILED
    assert ended.explanation is not None
    assert ended.explanation.reason is Reason.OUT_OF_MEMORY
    assert agent.ledger == {}, "the controller has recorded it: the agent may forget"


def test_nothing_is_placed_after_a_restart_before_the_inventory_is_in() -> None:
    """The reason says that the controller has just started, not that it is busy."""
    fleet = Fleet()
    fleet.machine()
    again = fleet.restarted()
    record = again.ask()
    assert record.state is State.QUEUED
    assert record.explanation is not None
    assert record.explanation.reason is Reason.CONTROLLER_RECOVERING
    again.agents["box"].connect()
    again.cycle()
    assert again.get(record).state is State.PLACED


def test_a_machine_that_has_only_said_hello_is_given_nothing() -> None:
    """Nor one that has told a part: what runs there is known with the last page."""
    fleet = Fleet()
    record = a_ready_server(fleet, fleet.machine(), "small")
    again = fleet.restarted()
    agent = again.agents["box"]
    waiting = again.ask(2)
    item = agent.ledger[allocation_of(record)]
    for speak in (
        lambda: agent.connect(inventory=False),
        lambda: agent.say(Inventory(items=(item,), last=False)),
        agent.disconnect,
        lambda: agent.connect(inventory=False),
        lambda: agent.say(Inventory(items=(), last=False)),
    ):
        speak()
        # Whatever else it says meanwhile has it looked at anew.
        again.core.model.stirred.add("box")
        again.cycle()
        assert again.get(waiting).state is State.QUEUED
        assert again.get(record).state is State.READY
    agent.say(Inventory(items=(item,), last=True))
    again.cycle()
    assert again.get(waiting).state is State.PLACED


def test_what_runs_under_another_epoch_is_not_what_was_told_to_run() -> None:
    """Its address is not taken, and its end frees nothing."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    item = agent.ledger[allocation_of(record)]
    for event in (AgentEvent.SERVING, AgentEvent.ENDED):
        for epoch in (item.epoch - 1, item.epoch + 1):
            agent.disconnect()
            agent.connect(inventory=False)
            other = item.model_copy(
                update={"epoch": epoch, "event": event, "seq": 99, "url": "http://x/"}
            )
            agent.say(Inventory(items=(other,), last=True))
            agent.say(Heartbeat(sent_at=NOON))
            found = fleet.get(record)
            assert found.holds
            assert found.state is State.UNKNOWN, "what was told to run is missing"
            assert found.url == record.url


def test_after_the_recovery_time_an_absent_machine_is_offline() -> None:
    """Who waits is told the true reason."""
    fleet = Fleet()
    fleet.machine()
    again = fleet.restarted()
    record = again.ask()
    fleet.clock.advance(31)
    tick(again.core)
    again.cycle()
    explanation = again.get(record).explanation
    assert explanation is not None
    assert explanation.reason is Reason.OFFLINE


def test_a_launch_is_repeated_until_the_agent_has_reported() -> None:
    """The same epoch each time; after the first report never again."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.disconnect()
    agent.connect()
    assert allocation_of(record) in agent.launched
    launches = [item for item in agent.heard if isinstance(item, Launch)]
    assert len({(item.allocation, item.epoch) for item in launches}) == 1
    assert len(launches) == 2
    agent.serve(allocation_of(record))
    agent.disconnect()
    agent.connect()
    assert len([item for item in agent.heard if isinstance(item, Launch)]) == 2


def test_an_agent_that_was_killed_while_preparing_is_told_again() -> None:
    """Its ledger has the allocation, its work is gone: it goes on from a launch."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.report(allocation_of(record), AgentEvent.ACCEPTED)
    agent.disconnect()
    agent.heard.clear()
    agent.connect()
    assert [item for item in agent.heard if isinstance(item, Launch)]
    assert fleet.get(record).state is State.PREPARING


def test_missed_reports_make_a_whole_timeline() -> None:
    """Only the last word arrives; the steps before it are told all the same."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.report(allocation_of(record), AgentEvent.ACCEPTED)
    agent.disconnect()
    agent.report(allocation_of(record), AgentEvent.PREPARED)
    agent.report(allocation_of(record), AgentEvent.SERVING, url="http://127.0.0.1:9/")
    agent.connect()
    agent.say(Heartbeat(sent_at=NOON))
    assert fleet.get(record).state is State.READY
    assert [kind.value for kind in kinds(fleet, record)] == [
        "asked",
        "placed",
        "preparing",
        "starting",
        "ready",
    ]


def test_repeated_reports_change_nothing_and_are_acknowledged() -> None:
    """Messages may come twice."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    before = fleet.get(record), kinds(fleet, record)
    for seq in (1, 2, 3):
        agent.say(
            Report(
                allocation=allocation_of(record),
                epoch=agent.launched[allocation_of(record)].epoch,
                seq=seq,
                at=NOON,
                event=AgentEvent.ACCEPTED,
            )
        )
    assert (fleet.get(record), kinds(fleet, record)) == before
    acknowledged = [item.seq for item in agent.heard if isinstance(item, Acknowledge)]
    assert acknowledged[-3:] == [1, 2, 3]


def test_a_note_that_comes_twice_is_told_once() -> None:
    """A report whose acknowledgement was lost is sent again, and is no second event."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    note = Explanation(reason=Reason.FILES_COPIED)
    agent.report(allocation_of(record), AgentEvent.NOTE, explanation=note)
    told = kinds(fleet, record)
    agent.say(agent.said[-1])
    assert kinds(fleet, record) == told
    assert told.count(TimelineKind.NOTE) == 1


def test_a_stop_is_told_again_until_it_is_confirmed() -> None:
    """The intent outlives the link; its author is in the timeline."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    stopping.stop(fleet.core, fleet.get(record), by="admin")
    assert fleet.get(record).state is State.STOPPING
    assert agent.stops() == []
    agent.connect()
    (stop,) = agent.stops()
    assert stop.allocation == allocation_of(record)
    agent.report(allocation_of(record), AgentEvent.ENDED)
    stopped = fleet.get(record)
    assert stopped.state is State.STOPPED
    assert stopped.explanation is not None
    assert stopped.explanation.reason is Reason.STOPPED_BY_ADMIN


def test_a_stop_of_a_silent_machine_is_carried_out_when_it_returns() -> None:
    """Unknown, asked to stop, found running, stopped."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    fleet.clock.advance(31)
    tick(fleet.core)
    stopping.stop(fleet.core, fleet.get(record))
    assert fleet.get(record).holds
    again = fleet.restarted()
    fleet.clock.advance(31)
    tick(again.core)
    assert again.get(record).state is State.UNKNOWN
    agent.connect()
    assert again.get(record).state is State.STOPPING
    assert len(agent.stops()) == 1
    agent.report(allocation_of(record), AgentEvent.ENDED)
    assert again.get(record).state is State.STOPPED


def test_a_lost_ledger_frees_nothing_until_somebody_stops_it() -> None:
    """What it forgot may still run there."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    agent.ledger.clear()
    agent.ledger_id = "ledger-2"
    agent.connect()
    lost = fleet.get(record)
    assert lost.state is State.UNKNOWN
    assert lost.explanation is not None
    assert lost.explanation.reason is Reason.LEDGER_LOST
    stopping.stop(fleet.core, lost)
    assert len(agent.stops()) == 1
    agent.report(allocation_of(record), AgentEvent.ENDED)
    assert not fleet.get(record).holds


def test_a_reboot_ends_what_ran_there() -> None:
    """A machine that was started anew, with an empty ledger, runs nothing of before."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    agent.ledger.clear()
    agent.boot_id = "boot-2"
    agent.connect()
    rebooted = fleet.get(record)
    assert rebooted.state is State.FAILED
    assert rebooted.explanation is not None
    assert rebooted.explanation.reason is Reason.MACHINE_REBOOTED


def test_a_lost_machine_that_returns_holds_until_its_rest_has_ended() -> None:
    """What still runs there is stopped, and its resources are nobody's until then."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    agent.disconnect()
    stopping.declare_lost(fleet.core, "box")
    assert fleet.get(record).state is State.FAILED
    agent.connect()
    waiting = fleet.ask(2, class_name="whole")
    assert fleet.get(waiting).state is State.QUEUED
    assert [stop.allocation for stop in agent.stops()] == [allocation_of(record)]
    agent.report(allocation_of(record), AgentEvent.ENDED)
    fleet.cycle()
    assert fleet.get(waiting).state is State.PLACED
    assert allocation_of(record) not in agent.ledger
