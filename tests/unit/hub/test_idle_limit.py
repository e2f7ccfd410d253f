"""Who computes nothing is ended where the catalog says so, and told before."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from fleet_builders import NOON, a_principal
from fleet_controller import Fleet, allocation_of
from held_gpu import a_gpu_usage, an_open_box, beat
from rich_machine import a_usage
from scheduling_builders import a_catalog, a_class, a_gpu_class, a_profile

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Holder, Reason
from fleet_contracts.sentences import sentence
from fleet_contracts.time_limits import SetBy, TimeLimit
from fleet_contracts.timeline import TimelineKind
from fleet_contracts.workloads import Resources
from fleet_hub.controller import stopping
from fleet_hub.controller.idleness import idle_of
from fleet_hub.controller.model import Presence
from fleet_hub.controller.records import Workload
from fleet_hub.controller.ticking import tick
from fleet_hub.controller.timelines import timeline_of


LIMIT = 3600.0
QUIET, BUSY = 40, 1020
"""Loads, in thousandths: of an open tab, and of one busy cell."""


def a_fleet(class_name: str = "gpu", limit: float | None = LIMIT) -> Fleet:
    """Return a fleet on which alice's server is ready, under an idle limit."""
    catalog = a_catalog(
        classes=(
            a_class(idle_limit_seconds=limit),
            a_gpu_class(idle_limit_seconds=limit),
        )
    )
    fleet = an_open_box(catalog)
    record = fleet.ask(profile="lab", class_name=class_name)
    fleet.agents["box"].serve(allocation_of(record))
    fleet.cycle()
    assert alice(fleet).state is State.READY
    return fleet


def alice(fleet: Fleet) -> Workload:
    """Return alice's server as it is now."""
    [record] = fleet.core.model.with_name("alice")
    return record


def passes(
    fleet: Fleet,
    minutes: int,
    *,
    load: int | None = QUIET,
    percent: int | None = 0,
    at: datetime | None = None,
) -> None:
    """Let time pass while the machine says each minute what it sees."""
    for _ in range(minutes):
        usage = a_usage(at or fleet.clock.now()).model_copy(
            update={"load_milli": load, "devices": (a_gpu_usage(percent),)}
        )
        beat(fleet, usage)
        tick(fleet.core)
        fleet.cycle()
        fleet.clock.advance(60)
    tick(fleet.core)
    fleet.cycle()


def reasons(fleet: Fleet) -> list[Reason]:
    """Return what alice's timeline tells of since she was ready."""
    events = fleet.store.events(alice(fleet).id)
    ready = [event.kind for event in events].index(TimelineKind.READY)
    later = [event.explanation for event in events[ready + 1 :]]
    return [why.reason for why in later if why is not None]


def told_to_bob(fleet: Fleet) -> Holder:
    """Return the holder of the GPU as bob, who waits for it, is told."""
    known = fleet.core.model.with_name("bob")
    bob = known[0] if known else None
    if bob is None:
        bob = fleet.ask(
            principal=a_principal("bob", 2), profile="lab", class_name="gpu"
        )
    why = timeline_of(fleet.core, fleet.get(bob)).explanation
    assert why is not None
    [holder] = why.holders
    return holder


@pytest.mark.parametrize(("load", "percent"), [(BUSY, 0), (QUIET, 63), (BUSY, 63)])
def test_a_kernel_that_is_busy_behind_a_closed_browser_is_not_ended(
    load: int, percent: int
) -> None:
    """Whether its GPU computes or its cores do: nobody asks who looks."""
    fleet = a_fleet()
    passes(fleet, 180, load=load, percent=percent)
    assert alice(fleet).state is State.READY
    assert reasons(fleet) == []
    assert told_to_bob(fleet).idle_ends is None
    assert timeline_of(fleet.core, alice(fleet)).limits.idle_ends is None


def test_one_that_is_idle_with_an_open_tab_is_told_and_ended_when_it_was_told() -> None:
    """What those who wait read is by the rule that ends it, to the second."""
    fleet = a_fleet()
    began = fleet.clock.now()
    passes(fleet, 49)
    assert reasons(fleet) == []
    passes(fleet, 2)
    assert reasons(fleet) == [Reason.IDLE_SOON]
    [holder, ends] = told_to_bob(fleet), began + timedelta(seconds=LIMIT)
    assert (holder.idle_since, holder.idle_ends) == (began, ends)
    assert timeline_of(fleet.core, alice(fleet)).limits.idle_ends == ends
    headline = timeline_of(fleet.core, fleet.core.model.with_name("bob")[0]).headline
    assert f"ends at {ends:%H:%M} UTC if still idle" in headline
    assert holder.ends_by is None, "it is no promise"

    passes(fleet, 8)
    assert alice(fleet).state is State.READY
    fleet.clock.advance((ends - fleet.clock.now()).total_seconds() - 1)
    tick(fleet.core)
    assert alice(fleet).state is State.READY
    fleet.clock.advance(1)
    tick(fleet.core)
    assert alice(fleet).state is State.STOPPING
    assert reasons(fleet) == [Reason.IDLE_SOON, Reason.IDLE_LIMIT]
    [stop] = fleet.agents["box"].stops()
    assert stop.explanation is not None
    assert sentence(stop.explanation) == (
        "Nothing was computed for as long as is allowed by class gpu: 1h."
    )
    fleet.agents["box"].report(allocation_of(alice(fleet)), AgentEvent.ENDED)
    fleet.cycle()
    assert fleet.core.model.with_name("bob")[0].assignment is not None


def test_one_cell_begins_the_time_anew_and_each_rest_is_warned_of_once() -> None:
    """Whoever heard the warning keeps the server by running something."""
    fleet = a_fleet()
    for _ in range(2):
        passes(fleet, 55)
        passes(fleet, 1, load=BUSY)
        assert told_to_bob(fleet).idle_ends is None
    assert alice(fleet).state is State.READY
    assert reasons(fleet) == [Reason.IDLE_SOON, Reason.IDLE_SOON]


def test_where_nobody_knows_nothing_is_ended() -> None:
    """A load or a GPU that is not seen, an old look, a machine that is silent."""
    for unseen in ({"load": None}, {"percent": None}, {"at": NOON - timedelta(days=1)}):
        fleet = a_fleet()
        passes(fleet, 180, **unseen)  # type: ignore[arg-type]
        assert (alice(fleet).state, reasons(fleet)) == (State.READY, [])
    fleet = a_fleet()
    passes(fleet, 55)
    fleet.agents["box"].disconnect()
    fleet.clock.advance(7200)
    tick(fleet.core)
    assert alice(fleet).stop is None


def test_a_class_of_cores_is_judged_by_its_machine_s_load() -> None:
    """A GPU of the machine that somebody else computes on is not its work."""
    fleet = a_fleet("cpu")
    passes(fleet, 61, percent=99)
    assert reasons(fleet) == [Reason.IDLE_SOON, Reason.IDLE_LIMIT]


def test_without_an_idle_limit_nobody_is_ended() -> None:
    """It is off unless the catalog says otherwise."""
    fleet = a_fleet(limit=None)
    passes(fleet, 180)
    assert (alice(fleet).state, reasons(fleet)) == (State.READY, [])


def test_a_restart_and_a_new_link_begin_the_time_anew() -> None:
    """Nobody looked meanwhile: it ends later than it might, and never too soon."""
    fleet = a_fleet()
    passes(fleet, 55)
    fleet = fleet.restarted()
    fleet.agents["box"].connect()
    passes(fleet, 49)
    assert alice(fleet).state is State.READY
    passes(fleet, 13)
    assert alice(fleet).state is State.STOPPING
    assert reasons(fleet) == [Reason.IDLE_SOON, Reason.IDLE_SOON, Reason.IDLE_LIMIT]


def test_a_catalog_that_changes_leaves_running_work_its_limit() -> None:
    """The next launch has the new one; of profile and class the shorter counts."""
    fleet = a_fleet()
    fleet.catalogs.catalog = a_catalog(
        classes=(a_class(), a_gpu_class(idle_limit_seconds=7200)),
        profiles=(a_profile(classes=("cpu", "gpu"), idle_limit_seconds=900),),
    )
    passes(fleet, 55)
    assert alice(fleet).state is State.READY
    kept = timeline_of(fleet.core, alice(fleet)).limits.time_limits
    assert kept.idle_limit == TimeLimit(seconds=LIMIT), "whoever set it"
    stopping.stop(fleet.core, alice(fleet))
    fleet.agents["box"].report(allocation_of(alice(fleet)), AgentEvent.ENDED)
    again = fleet.ask(profile="lab", class_name="gpu", attempt="again")
    assert again.assignment is not None
    assert again.assignment.idle_limit_seconds == 900
    told = timeline_of(fleet.core, again).limits.time_limits
    assert told.idle_limit == TimeLimit(seconds=900, set_by=SetBy.PROFILE)


def test_a_mac_s_gpu_is_seen_by_nobody() -> None:
    """What holds it is never idle, whatever the catalog says."""
    fleet, now = a_fleet("cpu"), NOON + timedelta(hours=9)
    record = alice(fleet)
    assert record.assignment is not None
    presence = Presence(online=True, since=NOON, observed_at=now, quiet_since=NOON)
    assert idle_of(record, presence, now) is not None
    for resources in (Resources(metal=True), Resources(devices=("GPU-unseen",))):
        other = replace(record.assignment, resources=resources)
        assert idle_of(replace(record, assignment=other), presence, now) is None
