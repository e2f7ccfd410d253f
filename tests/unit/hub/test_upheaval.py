"""What the engine makes of news that comes late, twice, out of order or not at all."""

from __future__ import annotations

from dataclasses import replace

from scheduling_builders import (
    ALICE,
    BOB,
    BOTH_DRIVERS,
    HOURLY_GPUS,
    NOON,
    OPEN,
    a_busy_box,
    a_catalog,
    a_class,
    a_gpu_box,
    a_gpu_hold,
    a_gpu_request,
    a_machine,
    a_planner,
    a_waiting,
    an_allocation,
    told,
)

from fleet_contracts.catalog import Quota
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName, Principal
from fleet_hub.scheduling.choice import SLACK_SECONDS
from fleet_hub.scheduling.explain import what_if
from fleet_hub.scheduling.snapshot import Pin
from fleet_hub.scheduling.telling import acknowledge


HOUR = 3600.0
DAY = 24 * HOUR
CY = Principal(user_id=3, name="cy")


def test_news_a_moment_before_a_promised_time_leaves_the_promise_where_it_is() -> None:
    """Half a second is not worth a move: it starts at the time that it was told."""
    planner = a_planner(a_busy_box(), waiting=(a_gpu_request("next"),))
    planner.decide(NOON)
    due = told(planner)["next"].no_later_than
    assert due == NOON + HOUR + SLACK_SECONDS
    planner.release("box", "held-box")
    early = planner.decide(due - 0.5)
    assert (early.placements, early.look_again_at) == ((), due)
    (placement,) = planner.decide(due).placements
    assert placement.workload == "next"


def test_half_a_second_more_of_a_holder_makes_nobody_s_told_time_later() -> None:
    """The time that was told stands; it only ever moves earlier, however little."""
    planner = a_planner(a_busy_box(), waiting=(a_gpu_request("next"),))
    planner.decide(NOON)
    before = told(planner)["next"].no_later_than
    planner.put_machine(a_busy_box(ends_by=NOON + HOUR + 0.5))
    planner.decide(NOON + 1)
    after = told(planner)["next"]
    assert after.no_later_than == before
    assert after.broken is None


def test_whoever_wakes_after_all_promised_times_starts_the_next_and_promises_anew() -> (
    None
):
    """A controller that slept for days begins with who is first, and tells the others."""
    planner = a_planner(
        a_busy_box(), waiting=(a_gpu_request("first"), a_gpu_request("second"))
    )
    planner.decide(NOON)
    told(planner)
    planner.release("box", "held-box")
    (placement,) = planner.decide(NOON + 3 * DAY).placements
    assert placement.workload == "first"
    assert placement.ends_by is not None
    found = told(planner)["second"]
    assert found.no_later_than == placement.ends_by + SLACK_SECONDS
    assert found.broken is not None


def test_a_holder_that_did_not_end_in_time_gives_no_time_to_who_asks_then() -> None:
    """Nobody knows its end any more: the next machine that has one is told instead."""
    planner = a_planner(a_busy_box("a"), a_busy_box("b", NOON + 5 * HOUR))
    planner.decide(NOON)
    before = what_if(planner, ALICE, "lab", "gpu")
    assert before.no_later_than == NOON + HOUR + SLACK_SECONDS
    planner.decide(NOON + 2 * HOUR)
    after = what_if(planner, ALICE, "lab", "gpu")
    assert not after.startable
    assert after.no_later_than == NOON + 5 * HOUR + SLACK_SECONDS


def test_an_end_that_comes_late_after_all_lets_the_next_one_start() -> None:
    """Its promise is gone by then, and the room is there for it all the same."""
    planner = a_planner(a_busy_box(), waiting=(a_gpu_request("next"),))
    planner.decide(NOON)
    planner.decide(NOON + 2 * HOUR)
    assert told(planner)["next"].no_later_than is None
    planner.release("box", "held-box")
    (placement,) = planner.decide(NOON + 2 * HOUR).placements
    assert placement.workload == "next"


def test_a_machine_that_is_taken_out_breaks_its_promises_with_that_cause() -> None:
    """Nothing is left to keep them on; who waits keeps waiting."""
    planner = a_planner(a_busy_box(), waiting=(a_gpu_request("next"),))
    planner.decide(NOON)
    told(planner)
    planner.remove_machine("box")
    planner.decide(NOON + 1)
    found = told(planner)["next"]
    assert found.no_later_than is None
    assert (found.broken.reason, found.broken.subject, found.broken.machine) == (
        Reason.PROMISE_BROKEN,
        "machine_removed",
        "box",
    )
    # Its holder's end is in nobody's way any more.
    assert planner.decide(NOON + 2 * HOUR).placements == ()


def test_a_machine_gone_in_the_same_moment_is_no_better_place() -> None:
    """One machine is freed and another taken out: only the first is looked at."""
    planner = a_planner(
        a_busy_box("a"),
        a_busy_box("b", NOON + 2 * HOUR),
        waiting=(a_gpu_request("next"),),
    )
    planner.decide(NOON)
    planner.remove_machine("b")
    planner.release("a", "held-a")
    (placement,) = planner.decide(NOON + 60).placements
    assert (placement.workload, placement.machine) == ("next", "a")


def test_news_of_work_that_nobody_knows_changes_nothing() -> None:
    """An end that was confirmed twice frees nothing twice."""
    planner = a_planner(a_busy_box(ends_by=None), waiting=(a_gpu_request("next"),))
    planner.decide(NOON)
    before = planner.fleet.entries["box"].free
    planner.release("box", "long-gone")
    planner.leave("long-gone")
    assert planner.fleet.entries["box"].free == before
    assert planner.decide(NOON + 1).placements == ()
    assert list(planner.waiters) == ["next"]


def test_files_on_a_machine_that_is_gone_are_looked_for_nowhere_else() -> None:
    """The idle machine beside it is no answer, and the request does not wait for ever."""
    pin = Pin(machine="gone", driver=DriverName.NATIVE)
    idle = a_gpu_box("idle", sharing=OPEN, drivers=BOTH_DRIVERS)
    planner = a_planner(idle, waiting=(a_gpu_request("next", pin=pin),))
    decided = planner.decide(NOON)
    assert decided.placements == ()
    (refusal,) = decided.refusals
    assert refusal.explanation.reason is Reason.DATA_NOT_LOCAL


def test_the_line_is_ranked_by_use_between_events_too_once_a_minute() -> None:
    """Who has held a machine for longer by then comes after who held one before."""
    held = replace(a_gpu_hold("box", None), owner="alice", user_id=1, since=NOON)
    box = replace(a_busy_box(), held=(held,))
    half_a_minute = replace(held, since=NOON - 30)
    planner = a_planner(
        box,
        usage={2: a_planner(box).settle(None, half_a_minute, NOON)},
        waiting=(
            a_gpu_request("bobs", principal=BOB, asked_at=NOON - 20),
            a_gpu_request("alices", asked_at=NOON - 10),
        ),
    )
    planner.decide(NOON)
    assert list(planner.line) == ["alices", "bobs"]
    planner.rank_if_due(NOON + 30)
    assert list(planner.line) == ["alices", "bobs"]
    planner.rank_if_due(NOON + 61)
    assert list(planner.line) == ["bobs", "alices"]


def test_use_is_not_forgotten_when_a_machine_gets_another_label() -> None:
    """The fleet is as large as before, so what users have had counts as before."""
    held = replace(a_gpu_hold("box", None), owner="alice", user_id=1)
    full = an_allocation("full", devices=("GPU-box-1",))
    box = replace(a_busy_box(gpus=2), held=(held, full))
    planner = a_planner(box)
    planner.decide(NOON)
    planner.release("box", "held-box")
    planner.put_machine(replace(box, held=(full,), labels={"room": "2"}))
    for workload, principal in (("a", ALICE), ("b", CY)):
        request = a_gpu_request(workload, principal=principal, class_name="pair")
        planner.ask(request)
    planner.rank_if_due(NOON + 61)
    assert list(planner.line) == ["b", "a"]


def test_a_look_at_everybody_finds_who_could_start_and_was_not_told() -> None:
    """Whose turn no event brought up gets it after all, and is counted."""
    planner = a_planner(
        a_busy_box(ends_by=None),
        waiting=(a_gpu_request("first"), a_gpu_request("second")),
    )
    planner.decide(NOON)
    assert [planner.look_again(1), planner.look_again(1)] == [0, 0]
    # As if the news of it had been lost on its way to the engine.
    planner.fleet.entries["box"].release("held-box")
    assert planner.look_again(1) == 1
    # Before that turn is taken nobody else is looked at.
    assert planner.look_again(1) == 0
    (placement,) = planner.decide(NOON + 1).placements
    assert placement.workload == "first"
    # Who is gone from the line since the look began is passed over.
    planner.leave("second")
    assert planner.look_again(5) == 0


def test_a_quota_that_still_binds_is_no_missed_turn_and_one_that_ended_is() -> None:
    """What keeps them is another thing now, and they are to be told which."""
    catalog = HOURLY_GPUS.model_copy(update={"quotas": (Quota(user="bob", devices=1),)})
    planner = a_planner(
        a_busy_box(ends_by=None),
        catalog=catalog,
        waiting=(a_gpu_request("next", principal=BOB),),
    )
    planner.decide(NOON)
    assert told(planner)["next"].explanation.reason is Reason.USER_LIMIT
    assert planner.look_again(5) == 0
    # As if the news of the end had been lost on its way to the line.
    planner.quotas.count([a_gpu_hold("box", None)], [])
    assert planner.look_again(5) == 1
    planner.decide(NOON + 1)
    assert told(planner)["next"].explanation.reason is Reason.GPU_BUSY


def test_files_that_are_away_for_a_moment_delay_nobody_and_for_longer_break_a_promise() -> (
    None
):
    """It starts once their machine is back; a look at everybody finds nothing missed."""
    planner = a_planner(
        a_busy_box(),
        a_machine("home"),
        waiting=(a_gpu_request("copy", source="home"), a_gpu_request("second")),
    )
    planner.decide(NOON)
    due = told(planner)["copy"].no_later_than
    assert due == NOON + HOUR + SLACK_SECONDS
    away = a_machine("home", online=False, expected_back=True)
    planner.put_machine(away)
    planner.release("box", "held-box")
    assert planner.decide(NOON + 1).placements == ()
    waits = told(planner)["copy"]
    assert (waits.explanation.reason, waits.explanation.subject) == (
        Reason.COPY_SOURCE_AWAY,
        "home",
    )
    assert (waits.no_later_than, waits.broken) == (due, None)
    assert planner.look_again(10) == 0
    planner.put_machine(replace(away, expected_back=False))
    (placement,) = planner.decide(NOON + 2).placements
    assert placement.workload == "second"
    broken = told(planner)["copy"].broken
    assert broken is not None
    assert (broken.subject, broken.machine) == ("offline", "home")
    assert planner.look_again(10) == 0
    planner.release("box", "second")
    assert planner.decide(NOON + 3).placements == ()
    planner.put_machine(a_machine("home"))
    (placement,) = planner.decide(NOON + 4).placements
    assert placement.workload == "copy"


def test_a_broken_promise_stays_news_until_the_one_it_concerns_has_read_it() -> None:
    """What broke again after it was told is told again; who left needs nothing."""
    planner = a_planner(
        a_busy_box(), waiting=(a_gpu_request("gone"), a_gpu_request("stays"))
    )
    planner.decide(NOON)
    acknowledge(planner, told(planner).values())
    planner.put_machine(a_busy_box(ends_by=NOON + 5 * HOUR))
    planner.decide(NOON)
    late = told(planner)
    assert late["stays"].broken is not None
    planner.leave("gone")
    planner.put_machine(replace(a_busy_box(), draining_by="an admin"))
    planner.decide(NOON)
    again = told(planner)["stays"].broken
    assert again is not None
    assert again.subject == Reason.DRAINING
    acknowledge(planner, late.values())
    assert told(planner)["stays"].broken is again, "the later news was not read yet"
    acknowledge(planner, told(planner).values())
    assert told(planner)["stays"].broken is None


def test_what_nobody_was_told_is_nobodys_broken_promise() -> None:
    """A time that was given and taken back within one go, and one that is back again."""
    planner = a_planner(a_busy_box(), waiting=(a_gpu_request("next"),))
    planner.decide(NOON)
    planner.put_machine(a_busy_box(ends_by=NOON + 5 * HOUR))
    planner.decide(NOON)
    found = told(planner)["next"]
    assert found.no_later_than == NOON + 5 * HOUR + SLACK_SECONDS
    assert found.broken is None
    for ends_by in (NOON + 9 * HOUR, NOON + 5 * HOUR):
        planner.put_machine(a_busy_box(ends_by=ends_by))
        planner.decide(NOON)
    assert told(planner)["next"].broken is None
    assert told(planner)["next"].no_later_than == found.no_later_than


def test_of_many_different_machines_all_are_counted_and_the_first_ten_are_named() -> (
    None
):
    """However the fleet is grouped, the examples are the first by name."""
    machines = tuple(
        a_machine(
            f"box-{number:02}",
            cores_milli=8000 + number,
            held=(an_allocation(f"held-{number}", cpu_milli=8000 + number),),
        )
        for number in range(14)
    )
    catalog = a_catalog(classes=(a_class("cpu"),))
    planner = a_planner(
        *machines, catalog=catalog, waiting=(a_waiting("w", class_name="cpu"),)
    )
    planner.decide(NOON)
    found = told(planner)["w"]
    assert found.counts == {Reason.CPU_BUSY: 14}
    named = [item.machine for item in found.rejections]
    assert named == [f"box-{number:02}" for number in range(10)]
