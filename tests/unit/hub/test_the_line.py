"""Whose turn it is, when at the latest, and what may make it later."""

from __future__ import annotations

from scheduling_builders import (
    ALICE,
    BOB,
    BOTH_DRIVERS,
    NOON,
    OPEN,
    a_catalog,
    a_class,
    a_gpu_box,
    a_gpu_class,
    a_machine,
    a_profile,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.catalog import Quota, Shares
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.decisions import Wait
from fleet_hub.scheduling.plan import plan, planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Snapshot, Usage, Waiting
from fleet_hub.scheduling.telling import acknowledge, waits


HOUR = 3600.0
HOURLY = a_catalog(
    classes=(
        a_class("one", limit_seconds=HOUR),
        a_gpu_class("gpu", limit_seconds=HOUR),
        a_gpu_class("all", devices=8, limit_seconds=HOUR),
        a_gpu_class("endless"),
    ),
    profiles=(
        a_profile(classes=("one", "gpu", "all", "endless")),
        a_profile("urgent", classes=("one", "gpu", "all", "endless"), priority=5),
    ),
)


def a_gpu_line(gpus: int = 1, **fields: object) -> Snapshot:
    """Return a fleet of one GPU box that serves everybody, and its line."""
    box = a_gpu_box(gpus=gpus, sharing=OPEN, drivers=BOTH_DRIVERS)
    return a_snapshot(**({"catalog": HOURLY, "machines": (box,)} | fields))


def ask(
    planner: Planner, workload: str, class_name: str = "gpu", **fields: object
) -> None:
    """Let somebody join the line now."""
    planner.ask(
        a_waiting(workload, class_name=class_name, asked_at=planner.now, **fields)
    )


def told(planner: Planner) -> dict[str, Wait]:
    """Return what everybody in the line is told, once."""
    found = {item.workload: item for item in waits(planner)}
    acknowledge(planner, found.values())
    return found


def test_a_later_submission_of_higher_priority_breaks_promises_with_its_name() -> None:
    """Whose promise it takes is told once: that it slipped, why, and because of whom."""
    planner = planner_of(a_gpu_line())
    for name in ("first", "second", "third"):
        ask(planner, name)
        planner.decide(planner.now)
    before = told(planner)
    ask(planner, "urgent", profile="urgent", principal=BOB)
    planner.decide(planner.now)
    after = told(planner)
    assert after["urgent"].no_later_than == before["second"].no_later_than
    slipped = after["second"]
    assert slipped.no_later_than > before["second"].no_later_than
    assert slipped.broken.reason is Reason.PROMISE_BROKEN
    assert slipped.broken.subject == "priority"
    assert slipped.broken.holders[0].workload == "urgent"
    # Nobody else is made later: what was promised stays promised.
    assert after["third"].no_later_than == before["third"].no_later_than
    assert after["third"].broken is None
    assert all(item.broken is None for item in told(planner).values())


def test_nobody_who_runs_is_pushed_out_for_a_higher_priority() -> None:
    """The urgent one waits for the holder's end, first in the line."""
    planner = planner_of(a_gpu_line())
    ask(planner, "running")
    assert planner.decide(NOON).placements[0].workload == "running"
    ask(planner, "other")
    ask(planner, "urgent", profile="urgent", principal=BOB)
    assert planner.decide(NOON).placements == ()
    found = told(planner)
    assert (found["urgent"].position, found["other"].position) == (0, 1)


def test_five_ahead_of_one_with_limits_give_a_position_and_a_time() -> None:
    """The bound is the sum of what the five may take, and not a guess."""
    planner = planner_of(a_gpu_line())
    for number in range(7):
        ask(
            planner,
            f"w{number}",
            principal=Principal(user_id=number, name=f"u{number}"),
        )
    planner.decide(NOON)
    last = told(planner)["w6"]
    hold = planner.waiters["w6"].request.hold_seconds
    assert last.position == 5
    assert last.no_later_than >= NOON + 6 * hold
    assert last.no_later_than <= NOON + 6 * (hold + 60)


def test_the_bound_counts_only_limits_that_are_enforced() -> None:
    """That somebody looks idle moves no promise: only the time limit does."""
    planner = planner_of(a_gpu_line())
    ask(planner, "running")
    planner.decide(NOON)
    ask(planner, "waiting")
    planner.decide(NOON)
    first = told(planner)["waiting"].no_later_than
    planner.decide(NOON + 1800)
    assert told(planner)["waiting"].no_later_than == first


def test_a_stream_of_small_jobs_does_not_keep_a_large_one_from_its_first_bound() -> (
    None
):
    """One GPU each, every ten minutes, for ever: the eight-GPU job starts as promised."""
    planner = planner_of(a_gpu_line(gpus=8))
    ends: list[tuple[float, str]] = []
    number, now, bound = 0, NOON, None
    started: float | None = None
    while started is None and now < NOON + 12 * HOUR:
        for workload in [name for end, name in ends if end <= now]:
            planner.release("gpu-box", workload)
        ends = [item for item in ends if item[0] > now]
        for _ in range(3):
            number += 1
            ask(planner, f"small-{number:04}", principal=BOB)
        if now == NOON + HOUR / 2:
            ask(planner, "large", "all")
        for placement in planner.decide(now).placements:
            ends.append((now + HOUR, placement.workload))
            started = now if placement.workload == "large" else started
        if bound is None and "large" in planner.waiters:
            bound = told(planner)["large"].no_later_than
        now += 600
    assert bound is not None
    assert started is not None
    assert started <= bound


def test_small_work_goes_first_where_that_makes_nobody_later() -> None:
    """Backfill: a job that ends before the promise begins uses the idle device."""
    catalog = a_catalog(
        classes=(
            a_gpu_class("short", limit_seconds=60),
            a_gpu_class("both", devices=2, limit_seconds=HOUR),
        )
    )
    held = an_allocation(devices=("GPU-gpu-box-0",), ends_by=NOON + 6 * HOUR)
    box = a_gpu_box(gpus=2, held=(held,))
    planner = planner_of(a_snapshot(catalog=catalog, machines=(box,)))
    ask(planner, "both", "both")
    assert planner.decide(NOON).placements == ()
    promised = told(planner)["both"].no_later_than
    ask(planner, "short", "short")
    (placement,) = planner.decide(NOON).placements
    assert placement.workload == "short"
    assert told(planner)["both"].no_later_than == promised


def test_work_that_would_break_a_promise_is_told_that_it_is_behind_it() -> None:
    """It fits now, and waits all the same: the reason names whom it waits for."""
    catalog = a_catalog(
        classes=(
            a_gpu_class("long", limit_seconds=24 * HOUR),
            a_gpu_class("both", devices=2, limit_seconds=HOUR),
        )
    )
    held = an_allocation(devices=("GPU-gpu-box-0",), ends_by=NOON + HOUR)
    box = a_gpu_box(gpus=2, held=(held,))
    planner = planner_of(a_snapshot(catalog=catalog, machines=(box,)))
    ask(planner, "both", "both")
    planner.decide(NOON)
    ask(planner, "long", "long")
    assert planner.decide(NOON).placements == ()
    found = told(planner)["long"].explanation
    assert found.reason is Reason.BEHIND
    assert [holder.workload for holder in found.holders] == ["both"]


def test_an_early_end_moves_promises_earlier_and_never_later() -> None:
    """Whoever profits is promised more; nobody else loses anything."""
    planner = planner_of(a_gpu_line(gpus=2))
    for number in range(6):
        ask(
            planner,
            f"w{number}",
            principal=Principal(user_id=number, name=f"u{number}"),
        )
    first = planner.decide(NOON).placements
    before = {name: item.no_later_than for name, item in told(planner).items()}
    planner.release("gpu-box", first[0].workload)
    planner.decide(NOON + 60)
    after = {name: item.no_later_than for name, item in told(planner).items()}
    assert all(after[name] <= before[name] for name in after)
    assert any(after[name] < before[name] for name in after)
    assert len(after) == len(before) - 1


def test_who_has_used_least_for_their_weight_comes_first_and_then_by_age() -> None:
    """A weight of two halves what counts; equal use leaves the age to decide."""
    catalog = HOURLY.model_copy(update={"shares": Shares(users={"bob": 4})})
    usage = {
        1: Usage(amount=1000.0, as_of=NOON),
        2: Usage(amount=2000.0, as_of=NOON),
        3: Usage(amount=1000.0, as_of=NOON),
    }
    snapshot = a_gpu_line(catalog=catalog, usage=usage)
    planner = planner_of(snapshot)
    cy = Principal(user_id=3, name="cy")
    for workload, principal, asked in (
        ("cy", cy, NOON - 30),
        ("alice", ALICE, NOON - 20),
        ("bob", BOB, NOON - 10),
    ):
        planner.ask(
            a_waiting(workload, principal=principal, class_name="gpu", asked_at=asked)
        )
    planner.decide(NOON)
    assert list(planner.line) == ["cy", "alice"]
    assert "bob" in planner.fleet.entries["gpu-box"].allocations


def test_use_is_half_forgotten_after_each_half_life() -> None:
    """Who used much long ago comes before who used as much just now."""
    half_life = HOURLY.shares.half_life_seconds
    usage = {
        1: Usage(amount=900.0, as_of=NOON),
        2: Usage(amount=1000.0, as_of=NOON - half_life),
    }
    snapshot = a_gpu_line(
        usage=usage,
        waiting=(
            a_waiting("recent", class_name="gpu", asked_at=NOON - 50),
            a_waiting("old", class_name="gpu", principal=BOB, asked_at=NOON - 10),
        ),
    )
    assert [item.workload for item in plan(snapshot).placements] == ["old"]


def test_a_burst_of_one_user_lets_the_next_user_in_between() -> None:
    """A hundred requests do not all pass before use is noticed."""
    waiting = [
        a_waiting(f"burst-{number:03}", class_name="gpu", asked_at=NOON - 60)
        for number in range(100)
    ]
    waiting.append(a_waiting("late", class_name="gpu", principal=BOB, asked_at=NOON))
    planner = planner_of(a_gpu_line(gpus=2, waiting=tuple(waiting)))
    started = {item.workload for item in planner.decide(NOON).placements}
    assert "late" in started


def test_what_every_agent_rejects_yields_its_turn() -> None:
    """A doomed start must not win each cycle and starve everybody behind it."""
    snapshot = a_gpu_line(
        waiting=(
            a_waiting("doomed", class_name="gpu", asked_at=NOON - 90, rejections=3),
            a_waiting("next", class_name="gpu", asked_at=NOON - 10),
        )
    )
    assert [item.workload for item in plan(snapshot).placements] == ["next"]


def test_two_thousand_stuck_gpu_requests_do_not_delay_one_for_a_cpu() -> None:
    """Who waits for other machines stands in nobody's way, also not in the count."""
    endless = an_allocation(devices=("GPU-gpu-box-0",), ends_by=None)
    machines = (
        a_gpu_box(held=(endless,), sharing=OPEN, drivers=BOTH_DRIVERS),
        a_machine("cpu-box", sharing=OPEN, drivers=BOTH_DRIVERS),
    )
    stuck = tuple(
        a_waiting(f"gpu-{number:04}", class_name="gpu") for number in range(2000)
    )
    last = a_waiting("cpu", class_name="one", principal=BOB, asked_at=NOON)
    planner = planner_of(
        a_snapshot(catalog=HOURLY, machines=machines, waiting=(*stuck, last))
    )
    (placement,) = planner.decide(NOON).placements
    assert (placement.workload, placement.machine) == ("cpu", "cpu-box")
    told_last = next(waits(planner, ["gpu-1999"]))
    assert told_last.explanation.reason is Reason.GPU_BUSY
    assert told_last.position == 1999


def test_a_quota_lets_the_next_one_in_and_keeps_nobody_else_out() -> None:
    """The user over their quota waits for themselves; the free GPU goes to others."""
    catalog = HOURLY.model_copy(update={"quotas": (Quota(user="alice", devices=1),)})
    planner = planner_of(a_gpu_line(gpus=2, catalog=catalog))
    ask(planner, "first")
    ask(planner, "second")
    ask(planner, "theirs", principal=BOB)
    started = [item.workload for item in planner.decide(NOON).placements]
    assert sorted(started) == ["first", "theirs"]
    assert told(planner)["second"].explanation.reason is Reason.USER_LIMIT


def test_equal_snapshots_give_equal_plans_whatever_the_order_they_are_given_in() -> (
    None
):
    """Ties are broken by name: shuffled machines and requests change nothing."""
    machines = [a_machine(f"box-{number}", sharing=OPEN) for number in range(4)]
    waiting: list[Waiting] = [a_waiting(f"w{number}") for number in range(6)]
    forwards = plan(a_snapshot(machines=tuple(machines), waiting=tuple(waiting)))
    backwards = plan(
        a_snapshot(machines=tuple(machines[::-1]), waiting=tuple(waiting[::-1]))
    )
    assert forwards == backwards


def test_a_clock_that_went_back_an_hour_keeps_nobody_waiting_for_it() -> None:
    """What is free is free now, whatever time it was when that was last looked at."""
    planner = planner_of(a_gpu_line())
    ask(planner, "running")
    planner.decide(NOON)
    ask(planner, "waiting")
    planner.decide(NOON + 10)
    planner.decide(NOON - HOUR)
    planner.release("gpu-box", "running")
    (placement,) = planner.decide(NOON - HOUR + 1).placements
    assert placement.workload == "waiting"


def test_a_promised_place_that_ends_first_is_where_more_is_free() -> None:
    """Who is over its time gives nothing back, so the next end is the promised one's."""
    planner = planner_of(a_gpu_line(gpus=2))
    ask(planner, "endless", "endless")
    ask(planner, "running")
    assert len(planner.decide(NOON).placements) == 2
    ask(planner, "promised")
    planner.decide(NOON)
    entry = planner.fleet.entries["gpu-box"]
    claim = entry.claims["promised"]
    assert entry.more_from(NOON) < claim.end
    assert entry.more_from(claim.start) == claim.end
