"""What people and the Hub are shown of one workload, and when."""

from __future__ import annotations

from datetime import timedelta

import pytest
from controller_catalogs import a_catalog
from fleet_builders import a_principal
from fleet_controller import Fleet, a_ready_server, allocation_of, an_ask

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import asking, exporting, offering, stopping
from fleet_hub.controller.accounting import usage
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.timelines import MOST_RUNS, etag_of, status_of, timeline_of
from fleet_hub.scheduling.decisions import Rule


GIB = 1 << 30


def a_limited_fleet(seconds: float = 600) -> Fleet:
    """Return a fleet whose classes may run this long."""
    classes = tuple(
        chosen.model_copy(update={"limit_seconds": seconds})
        for chosen in a_catalog().classes
    )
    return Fleet(catalog=a_catalog(classes=classes))


def ends(fleet: Fleet, server: int = 1) -> None:
    """Have a server end that was ready."""
    record = fleet.ask(server, attempt=f"{fleet.clock.now()}")
    agent = fleet.agents["box"]
    agent.serve(allocation_of(record))
    agent.report(allocation_of(record), AgentEvent.ENDED)
    fleet.clock.advance(60)


def test_the_limits_are_those_of_what_it_holds() -> None:
    """Cores, memory and its end from ready on; nothing while it waits."""
    fleet = a_limited_fleet()
    waits = fleet.ask(2, class_name="whole")
    nothing = timeline_of(fleet.core, waits).limits
    assert (nothing.cpu_milli, nothing.ends_at, nothing.devices) == (None, None, 0)
    stopping.leave(fleet.core, waits)
    agent = fleet.machine()
    placed = fleet.ask(class_name="whole")
    assert timeline_of(fleet.core, placed).limits.ends_at is None
    fleet.clock.advance(30)
    ready_at = fleet.clock.now()
    agent.serve(allocation_of(placed))
    document = timeline_of(fleet.core, fleet.get(placed))
    assert document.machine == "box"
    assert document.profile_title == "JupyterLab"
    limits = document.limits
    assert (limits.cpu_milli, limits.memory_bytes) == (4000, GIB)
    assert limits.ends_at == ready_at + timedelta(seconds=600)
    unlimited = Fleet()
    record = a_ready_server(unlimited, unlimited.machine())
    assert timeline_of(unlimited.core, record).limits.ends_at is None


def test_a_document_tells_this_start_whole_and_how_the_last_ones_went() -> None:
    """Of earlier ones the milestones, of ten at the most."""
    fleet = Fleet()
    fleet.machine()
    for _ in range(MOST_RUNS + 3):
        ends(fleet)
    record = fleet.ask(attempt="last")
    document = timeline_of(fleet.core, record)
    assert not document.truncated
    now = [one for one in document.events if one.generation == record.generation]
    assert [one.kind for one in now] == [TimelineKind.ASKED, TimelineKind.PLACED]
    before = [one for one in document.events if one.generation < record.generation]
    runs = sorted({one.generation for one in before})
    assert runs == list(range(record.generation - MOST_RUNS, record.generation))
    assert {one.kind for one in before} == {
        TimelineKind.ASKED,
        TimelineKind.READY,
        TimelineKind.STOPPED,
    }
    numbers = [one.seq for one in document.events]
    assert numbers == sorted(numbers)


def test_a_tag_changes_with_the_document_and_not_with_the_time() -> None:
    """A page that asks again for the same is told so."""
    fleet = Fleet()
    record = fleet.ask()
    before = etag_of(timeline_of(fleet.core, record))
    fleet.clock.advance(60)
    assert etag_of(timeline_of(fleet.core, record)) == before
    stopping.leave(fleet.core, record)
    assert etag_of(timeline_of(fleet.core, fleet.get(record))) != before


def test_the_hub_is_told_what_it_needs_to_know_of_a_server() -> None:
    """Who attends it, whether its turn was claimed, where it answers."""
    fleet = Fleet()
    agent = fleet.machine()

    def told(record_id: str) -> tuple[State, bool, bool, bool, str | None]:
        status = status_of(fleet.core, fleet.get(record_id), view_token="view")
        assert status.workload == record_id
        assert status.view_token == "view"
        return (
            status.state,
            status.attended,
            status.holds,
            status.unclaimed,
            status.url,
        )

    record = fleet.ask(attended=False)
    assert told(record.id) == (State.PLACED, False, True, True, None)
    headline = status_of(fleet.core, record, view_token="v").headline
    assert headline == "Your turn has come: the server is about to start on box."
    asking.ask(fleet.core, an_ask(attempt="second"))
    with fleet.attending(record.id):
        assert told(record.id) == (State.PLACED, True, True, False, None)
    agent.serve(allocation_of(record))
    url = fleet.get(record).url
    assert url is not None
    assert told(record.id) == (State.READY, False, True, False, url)
    status = status_of(fleet.core, fleet.get(record), view_token="v")
    assert status.unopened_since == fleet.get(record).ready_at
    waits = fleet.ask(2, class_name="whole")
    behind = fleet.ask(3, class_name="whole")
    places = [
        status_of(fleet.core, fleet.get(one), view_token="v").position
        for one in (waits, behind)
    ]
    assert places == [0, 1]


def test_an_unattended_server_that_is_to_be_stopped_waits_for_nobody() -> None:
    """Whoever stopped it knows of it."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask(attended=False)
    asking.ask(fleet.core, an_ask(attempt="second"))
    agent.serve(allocation_of(record))
    stopping.stop(fleet.core, fleet.get(record))
    status = status_of(fleet.core, fleet.get(record), view_token="v")
    assert status.unopened_since is None


def test_every_turn_is_remembered_once_with_how_it_came() -> None:
    """Also beyond the next start of its server, and beyond a restart."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask(class_name="whole")
    fleet.clock.advance(5)
    agent.serve(allocation_of(record))
    [turn] = fleet.core.model.turns.latest()
    assert (turn.workload, turn.decided.machine) == (record.id, "box")
    assert turn.decided.rule is Rule.ALONE
    agent.report(allocation_of(record), AgentEvent.ENDED)
    other = fleet.ask(2, class_name="whole")
    again = fleet.ask(attempt="second", class_name="whole")
    assert again.state is State.QUEUED
    for running in (fleet, fleet.restarted()):
        told = [turn.workload for turn in running.core.model.turns.latest()]
        assert told == [other.id, record.id]


def test_what_one_go_does_not_finish_is_gone_on_with_at_once() -> None:
    """Many turns come with one machine: nobody waits for another event meanwhile."""
    fleet = Fleet()
    agent = fleet.machine(cores=40)
    agent.disconnect()
    records = [fleet.ask(server) for server in range(1, 31)]
    agent.connect(cores=40)
    plan = run_cycle(fleet.core)
    assert plan.is_unfinished
    while fleet.core.wanted:
        run_cycle(fleet.core)
    assert {fleet.get(record).state for record in records} == {State.PLACED}


def test_an_account_says_of_which_period_it_is() -> None:
    """With its beginning if it has one, and never to an end that is yet to come."""
    fleet = Fleet()
    fleet.machine()
    begun = fleet.clock.now()
    fleet.ask()
    fleet.clock.advance(90)
    now = fleet.clock.now()
    whole = usage(fleet.core)
    assert (whole.as_of, whole.since, whole.until) == (now, None, now)
    later = usage(fleet.core, since=begun, until=now + timedelta(days=1))
    assert (later.since, later.until) == (begun, now)
    ahead = usage(fleet.core, since=now + timedelta(hours=1))
    assert ahead.until == now + timedelta(hours=1)
    assert ahead.accounts == ()
    [account] = whole.accounts
    assert account.allocations == 1
    assert account.seconds == 90.0
    assert account.core_seconds == 90.0
    assert account.memory_gib_seconds == 90.0


def test_an_offer_says_what_it_is_and_who_is_ahead() -> None:
    """The number of those who wait for it, before anybody asks."""
    fleet = Fleet()
    fleet.machine()
    fleet.ask(1, class_name="whole")
    fleet.ask(2, class_name="whole")
    told = offering.offers_for(fleet.core, a_principal(), None)
    by_class = {offer.class_name: offer for offer in told.offers}
    assert by_class["whole"].waiting == 1
    assert by_class["whole"].devices == 0
    assert not by_class["whole"].startable


@pytest.mark.parametrize("is_held", [True, False])
def test_an_exported_workload_says_where_it_is_and_since_when(
    is_held: bool,
) -> None:
    """Or that it is nowhere, and why."""
    fleet = Fleet()
    if is_held:
        fleet.machine()
    record = fleet.ask()
    state = exporting.state_of(fleet.core)
    [subject] = state.workloads
    assert subject.state is record.state
    if is_held:
        assert record.assignment is not None
        assert subject.machine == "box"
        assert subject.driver == "native"
        assert subject.placed_at == record.assignment.since
    else:
        assert subject.machine is None
        assert subject.driver is None
        assert subject.placed_at is None
        assert subject.explanation is not None
