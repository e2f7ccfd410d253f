"""Leaving, parking, stopping and retiring: who gives what back, and when."""

from __future__ import annotations

import pytest
from fleet_controller import Fleet, an_ask

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import asking, opening, stopping
from fleet_hub.controller.claiming import Claims
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.ports import StartAnswer, StartResult
from fleet_hub.controller.records import Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.controller.ticking import tick
from fleet_hub.controller.timelines import timeline_of


def allocation_of(record: Workload) -> str:
    """Return the allocation that *record* holds."""
    assert record.assignment is not None
    return record.assignment.allocation


def a_parked_turn(fleet: Fleet) -> Workload:
    """Return a workload whose turn has come while nobody attended."""
    record = fleet.ask(attended=False)
    assert record.state is State.PLACED
    return record


def test_leaving_the_line_is_immediate() -> None:
    """Nothing was held, so nothing has to be confirmed."""
    fleet = Fleet()
    record = fleet.ask()
    stopping.leave(fleet.core, record)
    left = fleet.get(record)
    assert left.state is State.STOPPED
    assert left.explanation is not None
    assert left.explanation.reason is Reason.LEFT_THE_LINE
    assert fleet.store.secrets(record.id) is None


def test_leaving_while_it_is_prepared_waits_for_the_machine() -> None:
    """What the agent has begun is held until the agent says that it is gone."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.report(allocation_of(record), AgentEvent.ACCEPTED)
    stopping.leave(fleet.core, fleet.get(record))
    assert fleet.get(record).state is State.STOPPING
    assert len(agent.stops()) == 1
    agent.report(allocation_of(record), AgentEvent.ENDED)
    assert fleet.get(record).state is State.STOPPED


def test_a_ready_server_is_stopped_not_left() -> None:
    """The word means giving up a place."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.serve(allocation_of(record))
    with pytest.raises(RequestRefusedError):
        stopping.leave(fleet.core, fleet.get(record))
    assert fleet.get(record).state is State.READY


def test_ending_twice_is_ending_once() -> None:
    """Stop, leave and retire may be repeated by anybody at any time."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.serve(allocation_of(record))
    for _ in range(3):
        stopping.stop(fleet.core, fleet.get(record))
        stopping.leave(fleet.core, fleet.get(record))
    assert [event.kind for event in fleet.store.events(record.id)].count(
        TimelineKind.STOPPING
    ) == 1
    agent.report(allocation_of(record), AgentEvent.ENDED)
    before = fleet.get(record)
    stopping.stop(fleet.core, before)
    stopping.leave(fleet.core, before)
    assert fleet.get(record) == before


def test_now_hurries_a_stop_that_is_under_way() -> None:
    """The agent is told again, with the wish to kill."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.serve(allocation_of(record))
    stopping.stop(fleet.core, fleet.get(record))
    stopping.stop(fleet.core, fleet.get(record), now=True)
    assert [stop.now for stop in agent.stops()] == [False, True]


def test_a_deleted_server_is_forgotten_once_nothing_is_held() -> None:
    """Its key then means another server, which is led to no old file."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask()
    agent.serve(allocation_of(record))
    stopping.retire(fleet.core, fleet.get(record))
    assert fleet.get(record).holds
    agent.report(allocation_of(record), AgentEvent.ENDED)
    assert record.id not in fleet.core.model.workloads
    assert fleet.store.events(record.id) == ()
    again = fleet.ask(attempt="second")
    assert again.id != record.id
    assert again.notebook != record.notebook
    assert again.home is None


def test_a_stopped_server_is_forgotten_at_once() -> None:
    """Nothing of it stays but the files on the machine."""
    fleet = Fleet()
    record = fleet.ask()
    stopping.stop(fleet.core, record)
    stopping.retire(fleet.core, fleet.get(record))
    assert fleet.core.model.workloads == {}
    assert fleet.core.model.by_key(record.key) is None


def test_a_turn_that_nobody_attends_holds_and_launches_nothing() -> None:
    """The token in the store is an old one: the Hub must come with a new one."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_parked_turn(fleet)
    assert record.holds
    assert agent.launched == {}
    claimed = asking.ask(fleet.core, an_ask(attempt="second"))
    assert claimed.id == record.id
    launch = agent.launched[allocation_of(record)]
    assert launch.spec.environment["JUPYTERHUB_API_TOKEN"] == "hub-token-of-second"


@pytest.mark.parametrize(
    "heard", [[], [AgentEvent.ACCEPTED], [AgentEvent.ACCEPTED, AgentEvent.PREPARED]]
)
def test_a_turn_that_an_ended_start_took_with_it_is_launched_anew(
    heard: list[AgentEvent],
) -> None:
    """Its link was not known to be closed when the turn came: what it had launched has a
    token that the next start has made void.
    """
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask(attempt="first")
    allocation = allocation_of(record)
    old = agent.launched[allocation]
    for event in heard:
        agent.report(allocation, event)

    again = asking.ask(fleet.core, an_ask(attempt="second"))

    assert allocation_of(again) == allocation
    new = agent.launched[allocation]
    assert new.epoch == old.epoch
    assert new.spec.environment["JUPYTERHUB_API_TOKEN"] == "hub-token-of-second"
    agent.serve(allocation)
    asking.ask(fleet.core, an_ask(attempt="second"))
    assert agent.launched[allocation] is new, "asked again by the same start"


def test_a_turn_that_nobody_claims_is_given_back_with_the_reason() -> None:
    """Only after the Hub has promised to come, and only at the end of the window."""
    fleet = Fleet()
    fleet.machine()
    record = a_parked_turn(fleet)
    waiting = fleet.ask(2, class_name="whole")
    claims = Claims(fleet.core)
    fleet.clock.advance(10_000)
    tick(fleet.core)
    assert fleet.get(record).holds, "the Hub has not been reached yet"
    claims.answered(record.id, StartResult(answer=StartAnswer.UNDER_WAY))
    fleet.clock.advance(119)
    tick(fleet.core)
    assert fleet.get(record).holds
    fleet.clock.advance(2)
    tick(fleet.core)
    given_back = fleet.get(record)
    assert given_back.state is State.STOPPED
    assert given_back.explanation is not None
    assert given_back.explanation.reason is Reason.NOT_CLAIMED
    fleet.cycle()
    assert fleet.get(waiting).state is State.PLACED


def an_unattended_server(fleet: Fleet) -> Workload:
    """Return a server that came up while nobody attended."""
    agent = fleet.machine()
    record = a_parked_turn(fleet)
    asking.ask(fleet.core, an_ask(attempt="second"))
    agent.serve(allocation_of(record))
    return fleet.get(record)


def test_a_server_that_nobody_opens_is_given_back_with_the_reason() -> None:
    """At the first word of the Hub after the window, and not by time alone."""
    fleet = Fleet(settings=Settings(open_seconds=600))
    record = an_unattended_server(fleet)
    fleet.clock.advance(599)
    opening.tell(fleet.core, record, opened=False)
    assert fleet.get(record).state is State.READY
    fleet.clock.advance(10_000)
    tick(fleet.core)
    assert fleet.get(record).state is State.READY, "the Hub was away: nobody is late"

    opening.tell(fleet.core, fleet.get(record), opened=False)
    fleet.agents["box"].report(allocation_of(record), AgentEvent.ENDED)
    ended = fleet.store.events(record.id)[-1]
    assert ended.kind is TimelineKind.STOPPED
    assert ended.explanation is not None
    assert ended.explanation.reason is Reason.NOT_CLAIMED
    assert not fleet.get(record).holds


def test_a_server_that_was_opened_once_is_kept_for_good() -> None:
    """Across a restart of the controller, whatever the Hub says later."""
    fleet = Fleet(settings=Settings(open_seconds=600))
    record = an_unattended_server(fleet)
    assert opening.unopened_since(fleet.core, record) == record.ready_at
    fleet = fleet.restarted()
    record = fleet.get(record)
    assert opening.unopened_since(fleet.core, record) == record.ready_at
    opening.tell(fleet.core, record, opened=True)
    fleet.clock.advance(10_000)
    opening.tell(fleet.core, fleet.get(record), opened=False)
    assert fleet.get(record).state is State.READY
    assert opening.unopened_since(fleet.core, fleet.get(record)) is None


@pytest.mark.parametrize("opened", [True, False])
def test_a_server_that_is_stopped_already_is_neither_late_nor_opened(
    *, opened: bool
) -> None:
    """Whoever stopped it did; what the Hub says meanwhile changes nothing."""
    fleet = Fleet(settings=Settings(open_seconds=600))
    record = an_unattended_server(fleet)
    agent = fleet.agents["box"]
    agent.disconnect()
    stopping.stop(fleet.core, record)
    fleet.clock.advance(10_000)
    tick(fleet.core)
    agent.connect()
    stopped = fleet.get(record)
    assert stopped.stop is not None
    told = (stopped.state, stopped.stop, stopped.absent, len(agent.stops()))
    assert opening.unopened_since(fleet.core, stopped) is None
    opening.tell(fleet.core, stopped, opened=opened)
    now = fleet.get(record)
    assert (now.state, now.stop, now.absent, len(agent.stops())) == told


def test_only_a_server_that_came_up_unattended_has_to_be_opened() -> None:
    """Who waited for the start is there; and an admin may switch it off."""
    fleet = Fleet()
    attended = fleet.machine()
    record = fleet.ask()
    attended.serve(allocation_of(record))
    assert opening.unopened_since(fleet.core, fleet.get(record)) is None

    for_ever = Fleet(settings=Settings(open_seconds=0))
    record = an_unattended_server(for_ever)
    for_ever.clock.advance(1_000_000)
    opening.tell(for_ever.core, record, opened=False)
    assert for_ever.get(record).state is State.READY


@pytest.mark.parametrize(
    ("answer", "is_tried_again_after"),
    [
        (StartAnswer.LATER, 2),
        (StartAnswer.UNREACHABLE, 2),
        (StartAnswer.FORBIDDEN, 30),
        (StartAnswer.REFUSED, 10),
    ],
)
def test_a_hub_that_does_not_start_is_asked_again(
    answer: StartAnswer, is_tried_again_after: float
) -> None:
    """The place is held meanwhile."""
    fleet = Fleet()
    fleet.machine()
    record = a_parked_turn(fleet)
    claims = Claims(fleet.core)
    assert [item.id for item in claims.due()] == [record.id]
    claims.answered(record.id, StartResult(answer=answer))
    assert claims.due() == []
    fleet.clock.advance(is_tried_again_after)
    assert [item.id for item in claims.due()] == [record.id]
    assert fleet.get(record).holds


def test_the_hubs_own_delay_is_kept() -> None:
    """429 with Retry-After."""
    fleet = Fleet()
    fleet.machine()
    record = a_parked_turn(fleet)
    claims = Claims(fleet.core)
    later = StartResult(answer=StartAnswer.LATER, retry_after_seconds=45)
    claims.answered(record.id, later)
    fleet.clock.advance(44)
    assert claims.due() == []
    fleet.clock.advance(1)
    assert claims.due() != []


def test_a_deleted_user_keeps_no_place() -> None:
    """The Hub does not know the server any more."""
    fleet = Fleet()
    fleet.machine()
    record = a_parked_turn(fleet)
    Claims(fleet.core).answered(record.id, StartResult(answer=StartAnswer.GONE))
    assert fleet.get(record).state is State.STOPPED


def test_parking_keeps_the_place_and_says_so() -> None:
    """A parked workload is told from a waiting one, and is not placed twice."""
    fleet = Fleet()
    fleet.machine()
    fleet.ask(1, class_name="whole")
    record = fleet.ask(2, class_name="whole")
    assert stopping.park(fleet.core, record.id)
    document = timeline_of(fleet.core, fleet.get(record))
    assert document.parked
    assert document.position == 0
    assert document.events[-1].kind is TimelineKind.PARKED


def test_what_holds_already_is_not_parked() -> None:
    """The Hub's wish to let go came too late: its start goes on."""
    fleet = Fleet()
    fleet.machine()
    record = fleet.ask()
    assert not stopping.park(fleet.core, record.id)
    assert not fleet.get(record).parked


def test_a_placed_turn_on_a_machine_that_goes_silent_returns_to_the_line() -> None:
    """Its agent was never told, so nothing can run there."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_parked_turn(fleet)
    agent.disconnect()
    fleet.clock.advance(31)
    tick(fleet.core)
    back = fleet.get(record)
    assert back.state is State.QUEUED
    assert back.line == record.line
    assert fleet.core.model.issued == {}


def test_a_renamed_user_keeps_what_is_theirs() -> None:
    """Their other servers follow; whoever had that name before loses it."""
    fleet = Fleet()
    first = fleet.ask(1)
    old = fleet.ask(
        principal=an_ask().principal.model_copy(update={"user_id": 9, "name": "ada"})
    )
    renamed = an_ask().principal.model_copy(update={"name": "ada"})
    fleet.ask(2, principal=renamed)
    assert fleet.get(first).principal.name == "ada"
    assert fleet.get(old).principal.name == ""
