"""What a machine says of itself against what it was told: silence, restarts, lies."""

from __future__ import annotations

import pytest
from fleet_builders import NOON
from fleet_controller import FakeAgent, Fleet, some_capabilities

from fleet_contracts.allocations import State
from fleet_contracts.protocol import (
    Acknowledge,
    AgentEvent,
    CapabilitiesChanged,
    Forget,
    Goodbye,
    Heartbeat,
    Hello,
    Inventory,
    InventoryItem,
    Launch,
    Report,
)
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import enrolling, stopping
from fleet_hub.controller.errors import LinkRefusedError
from fleet_hub.controller.records import Workload
from fleet_hub.controller.ticking import tick


def allocation_of(record: Workload) -> str:
    """Return the allocation that *record* holds."""
    assert record.assignment is not None
    return record.assignment.allocation


def a_ready_server(fleet: Fleet, agent: FakeAgent) -> Workload:
    """Return a server that holds the whole machine and is ready."""
    record = fleet.ask(class_name="whole")
    agent.serve(allocation_of(record))
    return fleet.get(record)


def kinds(fleet: Fleet, record: Workload) -> list[TimelineKind]:
    """Return the timeline's entries by kind."""
    return [event.kind for event in fleet.store.events(record.id)]


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


def test_foreign_inventory_is_shown_and_never_adopted() -> None:
    """Nobody here issued it: it is neither stopped nor counted nor forgotten."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.disconnect()
    agent.ledger["theirs"] = InventoryItem(
        allocation="theirs", epoch=77, event=AgentEvent.SERVING, seq=3
    )
    agent.heard.clear()
    agent.connect()
    assert fleet.core.model.presence["box"].foreign == {("theirs", 77)}
    assert {item.type for item in agent.heard} == {"welcome"}
    assert fleet.core.model.workloads == {}


@pytest.mark.parametrize("lie", ["other machine", "other epoch", "unknown"])
def test_a_link_speaks_only_for_what_was_issued_to_its_machine(lie: str) -> None:
    """A report for anything else changes nothing and gets no acknowledgement."""
    fleet = Fleet()
    agent = fleet.machine("box")
    liar = fleet.machine("liar", owner="mallory")
    record = fleet.ask(class_name="whole")
    assert record.assignment is not None
    assert record.assignment.machine == "box"
    speaker = agent if lie == "other epoch" else liar
    speaker.heard.clear()
    speaker.say(
        Report(
            allocation="unknown" if lie == "unknown" else allocation_of(record),
            epoch=record.assignment.epoch + (lie == "other epoch"),
            seq=1,
            at=NOON,
            event=AgentEvent.ENDED,
        )
    )
    assert fleet.get(record) == record
    assert speaker.heard == []


def test_a_second_live_link_is_refused_and_the_first_goes_on() -> None:
    """Two agents with one token: the later one is told why."""
    fleet = Fleet()
    agent = fleet.machine()
    second = FakeAgent(fleet.core, fleet.registry, "box")
    with pytest.raises(LinkRefusedError) as caught:
        second.connect()
    assert caught.value.code == "duplicate_link"
    record = fleet.ask()
    assert allocation_of(record) in agent.launched
    assert second.launched == {}


@pytest.mark.parametrize("protocol", [0, 2, 99])
def test_another_protocol_is_refused_with_a_remedy(protocol: int) -> None:
    """Neither side guesses; the machine stays offline."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.disconnect()
    with pytest.raises(LinkRefusedError, match="same version") as caught:
        agent.connect(protocol=protocol)
    assert caught.value.code == "protocol_unsupported"
    assert not fleet.registry.is_live("box")


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", '{"type": "launch"}', '{"type": "report", "seq": 0}'],
)
def test_a_message_that_is_none_closes_the_link(text: str) -> None:
    """Nothing is guessed from a broken message."""
    fleet = Fleet()
    agent = fleet.machine()
    assert agent.session is not None
    with pytest.raises(LinkRefusedError):
        agent.session.receive(text)


def test_a_link_begins_with_hello() -> None:
    """Nothing else is heard before."""
    fleet = Fleet()
    agent = fleet.machine()
    session = agent.session
    assert session is not None
    session.greeted = False
    with pytest.raises(LinkRefusedError, match="begins with hello"):
        agent.say(Inventory())


def test_a_store_that_went_back_in_time_issues_above_what_a_machine_has_seen() -> None:
    """A restored backup can never reuse an epoch."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.disconnect()
    agent.highest_epoch = (50 << 32) + 7
    agent.connect()
    record = fleet.ask()
    assert record.assignment is not None
    assert record.assignment.epoch > agent.highest_epoch - 1
    assert record.assignment.epoch >> 32 == 51


def test_a_picture_that_is_not_understood_fits_nothing() -> None:
    """Fail closed: a machine that cannot be read gets nothing placed on it."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.say(CapabilitiesChanged(capabilities={"host": "large"}))
    record = fleet.ask()
    assert record.state is State.QUEUED
    assert record.explanation is not None
    assert record.explanation.reason is Reason.CAPABILITIES_UNKNOWN
    agent.say(CapabilitiesChanged(capabilities=some_capabilities()))
    fleet.cycle()
    assert fleet.get(record).state is State.PLACED


def test_the_agents_own_end_of_a_server_is_told_as_such() -> None:
    """A time limit that the agent enforces passes through."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    limit = Explanation(reason=Reason.TIME_LIMIT)
    agent.report(allocation_of(record), AgentEvent.STOPPING, explanation=limit)
    assert fleet.get(record).state is State.STOPPING
    assert fleet.get(record).holds
    agent.report(allocation_of(record), AgentEvent.ENDED, explanation=limit)
    ended = fleet.get(record)
    assert ended.state is State.STOPPED
    assert ended.explanation == limit


def test_an_ended_allocation_is_forgotten_on_both_sides() -> None:
    """Neither ledger grows for ever."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    stopping.stop(fleet.core, fleet.get(record))
    agent.report(allocation_of(record), AgentEvent.ENDED)
    assert [item.allocation for item in agent.heard if isinstance(item, Forget)] == [
        allocation_of(record)
    ]
    assert agent.ledger == {}
    assert fleet.core.model.issued == {}


def test_a_lost_forget_is_repeated_at_the_next_hello() -> None:
    """An agent that still knows an ended allocation is told to forget it."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    stopping.stop(fleet.core, fleet.get(record))
    kept = agent.ledger[allocation_of(record)].model_copy(
        update={"event": AgentEvent.ENDED, "seq": 4}
    )
    stopping.declare_lost(fleet.core, "box")
    agent.disconnect()
    agent.ledger[allocation_of(record)] = kept
    agent.connect()
    assert agent.ledger == {}
    assert fleet.core.model.issued == {}


def test_enrolling_again_sends_the_earlier_agent_away() -> None:
    """Its token is void, so its link is too; what runs there is still held."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_ready_server(fleet, agent)
    enrolling.enrol(fleet.core, name="box", owner="alice", local=True)
    goodbye = agent.heard[-1]
    assert isinstance(goodbye, Goodbye)
    assert (goodbye.code, goodbye.retry) == ("revoked", False)
    assert not fleet.registry.is_live("box")
    assert fleet.get(record).holds


def test_a_server_at_a_forbidden_address_is_ended() -> None:
    """Nobody is led there: it is stopped at once, and the timeline says why."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.report(allocation_of(record), AgentEvent.ACCEPTED)
    agent.report(allocation_of(record), AgentEvent.PREPARED)
    agent.report(
        allocation_of(record), AgentEvent.SERVING, url="http://169.254.169.254:80/"
    )
    sent_away = fleet.get(record)
    assert sent_away.state is State.STOPPING
    assert sent_away.url is None
    (stop,) = agent.stops()
    assert stop.now
    agent.report(allocation_of(record), AgentEvent.ENDED)
    ended = fleet.get(record)
    assert ended.explanation is not None
    assert ended.explanation.reason is Reason.START_FAILED


def test_an_endless_inventory_closes_the_link() -> None:
    """A machine cannot fill the controller's memory."""
    fleet = Fleet()
    agent = fleet.machine()
    pages = [
        Inventory(
            items=tuple(
                InventoryItem(
                    allocation=f"{page}-{number}",
                    epoch=1,
                    event=AgentEvent.SERVING,
                    seq=1,
                )
                for number in range(200)
            ),
            last=False,
        )
        for page in range(51)
    ]
    for page in pages[:50]:
        agent.say(page)
    with pytest.raises(LinkRefusedError, match="at most"):
        agent.say(pages[50])


def test_hello_twice_is_refused() -> None:
    """A link is one agent's life."""
    fleet = Fleet()
    agent = fleet.machine()
    with pytest.raises(LinkRefusedError, match="once per link"):
        agent.say(Hello(protocol=1, agent_version="1", boot_id="b", ledger_id="l"))
    assert not any(isinstance(item, Goodbye) for item in agent.heard)
