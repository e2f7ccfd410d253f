"""What was promised before a restart of the engine stands after it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scheduling_builders import (
    BOTH_DRIVERS,
    HOURLY_GPUS,
    NOON,
    OPEN,
    a_busy_box,
    a_gpu,
    a_gpu_box,
    a_gpu_hold,
    a_gpu_request,
    a_machine,
    a_planner,
    reserved,
    told,
)

from fleet_contracts.catalog import Quota
from fleet_contracts.causes import Cause
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName, Principal
from fleet_hub.scheduling.choice import SLACK_SECONDS
from fleet_hub.scheduling.snapshot import MachineState, Reservation


HOUR = 3600.0
CY = Principal(user_id=3, name="cy")


def test_a_restart_keeps_a_promise_with_the_driver_that_it_was_made_for() -> None:
    """Though another driver of the same machine would be preferred today."""
    start = NOON + 2 * HOUR
    kept = Reservation(machine="box", driver=DriverName.SIMULATION, start=start)
    planner = a_planner(
        replace(a_busy_box(), owner="alice"),
        waiting=(a_gpu_request("next", promise=start, reservation=kept),),
    )
    assert reserved(planner, "next") == kept


def test_a_restart_waits_for_the_machine_with_the_files_before_it_breaks_a_promise() -> (
    None
):
    """Nobody knows yet whether that machine comes back; one that is gone does not."""
    kept = Reservation(machine="box", driver=DriverName.NATIVE, start=NOON + HOUR)
    planner = a_planner(
        a_gpu_box("box", held=(a_gpu_hold("box", ends_by=NOON + HOUR - 60),)),
        waiting=(
            a_gpu_request("copy", source="home", promise=NOON + HOUR, reservation=kept),
        ),
        recovering=True,
    )
    planner.restore_promises()
    planner.decide(NOON)
    assert told(planner)["copy"].no_later_than == NOON + HOUR
    planner.recover(recovering=False)
    planner.decide(NOON + 1)
    waits = told(planner)["copy"]
    assert waits.no_later_than is None
    assert waits.broken is not None
    assert waits.broken.machine == "home"


def test_a_restart_gives_nobody_a_later_place_before_their_machine_can_be_back() -> (
    None
):
    """Another machine is there first; what was said stands until it is known to be over.

    So it does for the next run, if this one ends before that.
    """
    due = NOON + HOUR
    kept = Reservation(machine="b", driver=DriverName.NATIVE, start=due)
    waiting = (a_gpu_request("next", promise=due, reservation=kept),)
    later = a_busy_box("a", NOON + 5 * HOUR)
    away = replace(a_busy_box("b", due - SLACK_SECONDS), online=False)
    planner = a_planner(later, away, recovering=True, waiting=waiting)
    planner.decide(NOON)
    found = told(planner)["next"]
    assert (found.no_later_than, found.reservation, found.broken) == (due, kept, None)
    planner.put_machine(replace(away, online=True))
    planner.decide(NOON + 1)
    assert told(planner)["next"].reservation == kept

    planner = a_planner(later, away, recovering=True, waiting=waiting)
    planner.decide(NOON)
    planner.recover(recovering=False)
    planner.decide(NOON + 30)
    found = told(planner)["next"]
    assert found.no_later_than == NOON + 5 * HOUR + SLACK_SECONDS
    assert found.broken is not None
    assert (found.broken.subject, found.broken.machine) == (Reason.OFFLINE, "b")


def test_who_left_the_line_while_their_machine_was_away_is_awaited_no_more() -> None:
    """The machine stays away, and there is nobody whom that concerns."""
    due = NOON + HOUR
    kept = Reservation(machine="b", driver=DriverName.NATIVE, start=due)
    away = replace(a_busy_box("b", due - SLACK_SECONDS), online=False)
    planner = a_planner(
        away,
        recovering=True,
        waiting=(a_gpu_request("next", promise=due, reservation=kept),),
    )
    planner.decide(NOON)
    planner.leave("next")
    planner.recover(recovering=False)
    assert not planner.decide(NOON + 30).placements
    assert told(planner) == {}


def test_a_restart_gives_nobody_the_quota_that_a_promise_of_before_counts_in() -> None:
    """Whose machine is back first does not overtake who was promised a place."""
    quota = Quota(user="alice", devices=1)
    due = NOON + HOUR
    kept = Reservation(machine="b", driver=DriverName.NATIVE, start=due)
    away = replace(a_busy_box("b", due - SLACK_SECONDS), online=False)
    planner = a_planner(
        a_busy_box("a", NOON + 2 * HOUR),
        away,
        recovering=True,
        catalog=HOURLY_GPUS.model_copy(update={"quotas": (quota,)}),
        waiting=(
            a_gpu_request("promised", promise=due, reservation=kept),
            a_gpu_request("barred", asked_at=NOON - 90),
        ),
    )
    planner.decide(NOON)
    found = told(planner)
    assert found["barred"].no_later_than is None
    planner.put_machine(replace(away, online=True))
    planner.decide(NOON + 1)
    found = told(planner)
    assert (found["promised"].reservation, found["promised"].broken) == (kept, None)
    assert found["barred"].explanation.reason is Reason.USER_LIMIT


def test_after_a_restart_nobody_takes_a_place_while_their_own_may_come_back() -> None:
    """Whoever matters more has a promise too; only once that is gone they need another."""
    due = NOON + HOUR
    kept = {
        name: Reservation(machine=machine, driver=DriverName.NATIVE, start=due)
        for name, machine in (("high", "a"), ("low", "b"))
    }
    waiting = (
        a_gpu_request("high", profile="urgent", promise=due, reservation=kept["high"]),
        a_gpu_request("low", promise=due, reservation=kept["low"]),
    )
    there, home = (a_busy_box(name, due - SLACK_SECONDS) for name in ("b", "a"))
    away = replace(home, online=False)
    planner = a_planner(there, away, recovering=True, waiting=waiting)
    planner.decide(NOON)
    found = told(planner)
    assert found["high"].no_later_than == due
    assert (found["low"].reservation, found["low"].broken) == (kept["low"], None)
    planner.put_machine(home)
    planner.decide(NOON + 1)
    assert {name: told(planner)[name].reservation for name in kept} == kept

    planner = a_planner(there, away, recovering=True, waiting=waiting)
    planner.decide(NOON)
    planner.recover(recovering=False)
    planner.decide(NOON + 30)
    found = told(planner)
    assert found["high"].reservation == replace(kept["high"], machine="b")
    assert found["low"].broken is not None
    assert found["low"].broken.subject == Cause.PRIORITY


def test_after_a_restart_a_broken_device_is_the_cause_and_not_the_last_miss() -> None:
    """The machine could run it once the device works: nothing else is in the way."""
    broken = a_gpu("GPU-b-0", healthy=False, usable=False)
    home = a_gpu_box("b", sharing=OPEN, drivers=BOTH_DRIVERS)
    home = replace(home, facts=home.facts.model_copy(update={"devices": (broken,)}))
    kept = Reservation(machine="b", driver=DriverName.SIMULATION, start=NOON + HOUR)
    planner = a_planner(
        a_busy_box("a", NOON + 5 * HOUR),
        home,
        waiting=(a_gpu_request("next", promise=NOON + HOUR, reservation=kept),),
    )
    planner.decide(NOON)
    found = told(planner)["next"].broken
    assert found is not None
    assert (found.subject, found.machine) == (Reason.UNHEALTHY, "b")


def test_a_promise_of_before_whose_machine_is_away_when_it_is_due_says_just_that() -> (
    None
):
    """Its machine came back, and is away for a moment as its time comes."""
    kept = Reservation(machine="b", driver=DriverName.SIMULATION, start=NOON + HOUR)
    home = a_busy_box("b", NOON + HOUR - SLACK_SECONDS)
    planner = a_planner(
        home, waiting=(a_gpu_request("next", promise=NOON + HOUR, reservation=kept),)
    )
    planner.decide(NOON)
    assert told(planner)["next"].reservation == kept
    planner.put_machine(replace(home, online=False, expected_back=True))
    planner.decide(NOON + HOUR)
    found = told(planner)["next"].broken
    assert found is not None
    assert (found.subject, found.machine) == (Reason.OFFLINE, "b")


def test_what_took_one_place_is_not_the_cause_when_the_next_one_is_lost() -> None:
    """A place as early as before breaks no promise, and leaves no cause behind."""
    planner = a_planner(
        a_busy_box("a", NOON + HOUR),
        a_busy_box("b", NOON + HOUR),
        waiting=(a_gpu_request("next"),),
    )
    planner.decide(NOON)
    waiter = planner.waiters["next"]
    assert waiter.found is not None
    first, second = waiter.found.machine, {"a": "b", "b": "a"}[waiter.found.machine]
    home = planner.fleet.entries[first].machine
    planner.put_machine(replace(home, draining_by="an admin"))
    planner.decide(NOON + 1)
    assert waiter.found is not None
    assert waiter.found.machine == second
    assert (waiter.broken, waiter.lost) == (None, None)


def test_a_machine_that_stayed_away_is_the_cause_though_a_quota_is_used_up_by_then() -> (
    None
):
    """Whoever comes first has the quota now; what was lost before was lost by the machine."""
    due = NOON + HOUR
    kept = Reservation(machine="b", driver=DriverName.NATIVE, start=due)
    planner = a_planner(
        a_busy_box("a", NOON + 2 * HOUR),
        replace(a_busy_box("b", due - SLACK_SECONDS), online=False),
        recovering=True,
        catalog=HOURLY_GPUS.model_copy(
            update={"quotas": (Quota(user="alice", devices=1),)}
        ),
        waiting=(
            a_gpu_request("promised", promise=due, reservation=kept),
            a_gpu_request("first", asked_at=NOON - 90),
        ),
    )
    planner.decide(NOON)
    planner.recover(recovering=False)
    planner.decide(NOON + 30)
    found = told(planner)
    assert found["first"].no_later_than is not None
    lost = found["promised"]
    assert lost.explanation.reason is Reason.USER_LIMIT
    assert lost.broken is not None
    assert (lost.broken.subject, lost.broken.machine) == (Reason.OFFLINE, "b")


@pytest.mark.parametrize(
    ("home", "cause"),
    [
        (a_machine("b", sharing=OPEN, drivers=BOTH_DRIVERS), "accelerator_mismatch"),
        (a_busy_box("b", NOON + 9 * HOUR), "less_room"),
        (a_machine("c"), "machine_removed"),
    ],
)
def test_after_a_restart_the_cause_is_what_became_of_the_machine(
    home: MachineState, cause: str
) -> None:
    """And not the restart, which takes nobody's ground."""
    kept = Reservation(machine="b", driver=DriverName.SIMULATION, start=NOON + HOUR)
    planner = a_planner(
        a_busy_box("a", NOON + 5 * HOUR),
        home,
        waiting=(a_gpu_request("next", promise=NOON + HOUR, reservation=kept),),
    )
    planner.decide(NOON)
    found = told(planner)["next"]
    assert found.no_later_than == NOON + 5 * HOUR + SLACK_SECONDS
    assert found.broken is not None
    assert (found.broken.subject, found.broken.machine) == (cause, "b")
