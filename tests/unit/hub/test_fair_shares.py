"""Whose turn it is by what they have had: shares of a fleet, in numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scheduling_builders import (
    ALICE,
    BOB,
    BOTH_DRIVERS,
    GIB,
    HOURLY_GPUS,
    NOON,
    OPEN,
    a_class,
    a_gpu_box,
    a_gpu_request,
    a_machine,
    a_planner,
    an_allocation,
    some_facts,
)

from fleet_contracts.workloads import Resources
from fleet_hub.scheduling.decisions import Rule
from fleet_hub.scheduling.disks import Disks, by_disk
from fleet_hub.scheduling.fair_use import FairUse
from fleet_hub.scheduling.likely import Came, Outset
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.shares import (
    ENTRY_SECONDS,
    Capacity,
    Ledger,
    asked_rate,
    capacity_of,
    decayed,
    rate,
    settle,
)
from fleet_hub.scheduling.snapshot import Usage, Waiting


HOUR = 3600.0
WHOLE = Capacity(cpu_milli=10_000, memory_bytes=100 * GIB, devices=4)


def a_full_box(gpus: int = 1, **fields: object) -> Planner:
    """Return a fleet whose GPUs are held by cy without an end."""
    held = tuple(
        an_allocation(
            f"cy-{number}",
            user_id=3,
            owner="cy",
            devices=(f"GPU-gpu-box-{number}",),
            ends_by=None,
        )
        for number in range(gpus)
    )
    box = a_gpu_box(gpus=gpus, sharing=OPEN, drivers=BOTH_DRIVERS, held=held)
    return a_planner(box, **fields)


def asks(planner: Planner, *requests: tuple[str, object]) -> None:
    """Let these ask one after the other, a second apart."""
    for at, (workload, principal) in enumerate(requests):
        planner.ask(a_gpu_request(workload, principal=principal, asked_at=NOON + at))


def test_a_fleet_is_all_that_is_known_of_its_machines() -> None:
    """A machine of which nobody knows the memory counts with what is known of it."""
    machines = (
        a_machine("known", cores_milli=4000, memory_bytes=GIB),
        a_machine("half", facts=some_facts(cores_milli=2000, memory_bytes=None)),
        a_gpu_box("gpus", gpus=2, cores_milli=None, memory_bytes=2 * GIB),
    )
    assert capacity_of(machines) == Capacity(
        cpu_milli=6000, memory_bytes=3 * GIB, devices=2
    )
    assert capacity_of(()) == Capacity(cpu_milli=0, memory_bytes=0, devices=0)


@pytest.mark.parametrize(
    ("cores", "memory", "devices", "share"),
    [(1, 1, 0, 0.1), (1, 50, 0, 0.5), (1, 1, 3, 0.75), (0, 0, 0, 0.0)],
)
def test_a_share_is_the_largest_part_of_anything(
    cores: int, memory: int, devices: int, share: float
) -> None:
    """Who takes half of the memory has half of the fleet, whatever else is left."""
    held = Resources(cpu_milli=cores * 1000, memory_bytes=memory * GIB)
    assert rate(held, WHOLE, devices=devices) == share
    chosen = a_class(cpu_milli=cores * 1000, memory_bytes=memory * GIB, devices=devices)
    assert asked_rate(chosen, WHOLE) == share


def test_of_what_was_used_half_is_left_after_a_half_life() -> None:
    """A quarter after two; a clock that went back adds nothing."""
    used = Usage(amount=800.0, as_of=NOON)
    left = [decayed(used, NOON + age * HOUR, HOUR) for age in (0, 1, 2)]
    assert left == [800.0, 400.0, 200.0]
    assert decayed(used, NOON - HOUR, HOUR) == 800.0


def test_a_release_adds_to_what_was_used_before() -> None:
    """What is older has been forgotten in part; the entry counts as well."""
    held = an_allocation(cpu_milli=10_000, since=NOON - 60)
    values = {"until": NOON, "capacity": WHOLE, "half_life_seconds": 1e12}
    alone = settle(None, held, **values)
    assert alone.amount == pytest.approx(60 + ENTRY_SECONDS)
    assert alone.as_of == NOON
    before = Usage(amount=1000.0, as_of=NOON - 60)
    more = settle(before, held, **values)
    assert more.amount == pytest.approx(1060 + ENTRY_SECONDS)


def test_what_has_ended_counts_no_further_and_stays_used() -> None:
    """The ledger grows by what runs, and only by that."""
    ledger = Ledger({}, now=NOON, capacity=WHOLE, half_life_seconds=1e12)
    runs = an_allocation("runs", user_id=1, cpu_milli=5000, since=NOON)
    ends = an_allocation("ends", user_id=1, cpu_milli=5000, since=NOON)
    ledger.start(runs)
    ledger.start(ends)
    assert ledger.used(NOON + 100)[1] == pytest.approx(100 + ENTRY_SECONDS)
    ledger.end(ends)
    assert ledger.used(NOON + 200)[1] == pytest.approx(150 + ENTRY_SECONDS)
    ledger.end(runs)
    assert ledger.used(NOON + 900)[1] == pytest.approx(150 + ENTRY_SECONDS)
    assert ledger.used(NOON)[1] == pytest.approx(150 + ENTRY_SECONDS)


def test_a_server_that_has_ended_holds_its_user_back_less_and_less() -> None:
    """What it used is forgotten by and by; it uses nothing more."""
    held = an_allocation("mine", user_id=1, devices=("GPU-gpu-box-0",), since=NOON)
    endless = an_allocation("theirs", devices=("GPU-gpu-box-1",), ends_by=None)
    box = a_gpu_box(gpus=2, sharing=OPEN, drivers=BOTH_DRIVERS, held=(held, endless))
    planner = a_planner(box)
    planner.decide(NOON)
    asks(planner, ("waits", ALICE))
    planner.ask(a_gpu_request("pair", class_name="pair", asked_at=NOON))
    planner.release("gpu-box", "mine")
    planner.leave("waits")
    shares = []
    for hours in (1, 2, 3):
        planner.look(NOON + hours * HOUR)
        planner.rank_if_due(NOON + hours * HOUR)
        shares.append(planner.line.place_of("pair").share)
    assert shares == sorted(shares, reverse=True)
    assert 0 < shares[-1] < shares[0]


@pytest.mark.parametrize(
    "change",
    [
        {"asked": ((3, NOON),)},
        {"handle": "h"},
        {"ends_by": NOON + 9 * HOUR},
        {"resources": Resources(devices=("GPU-gpu-box-0",), cpu_milli=0)},
    ],
)
@pytest.mark.parametrize("times", [1, 3])
def test_use_counts_once_however_often_what_is_held_is_known_otherwise(
    change: dict[str, Any], times: int
) -> None:
    """Who is asked to give it back, or got ready late, has had no more for that."""
    held = an_allocation(
        "held", devices=("GPU-gpu-box-0",), since=NOON - HOUR, ends_by=NOON + HOUR
    )

    def share(*changes: dict[str, Any]) -> float:
        box = a_gpu_box(sharing=OPEN, drivers=BOTH_DRIVERS, held=(held,))
        planner = a_planner(box)
        planner.rank_if_due(NOON)
        for values in changes:
            after = replace(held, **values)
            if after.is_same_hold(held):
                planner.retell("gpu-box", after)
            planner.put_machine(replace(box, held=(after,)))
        planner.ask(a_gpu_request("next", principal=BOB))
        planner.look(NOON + 120)
        planner.rank_if_due(NOON + 120)
        return planner.line.place_of("next").share

    assert share() > 0
    # The changed rate, if it is another one, counts for these two minutes.
    assert share(*[{}, change] * times) == pytest.approx(share(), rel=0.02)


def test_users_take_turns_also_among_those_who_come_after_a_start() -> None:
    """What has just started counts at once, not only when the line is next ranked."""
    planner = a_full_box(gpus=1)
    planner.decide(NOON)
    planner.release("gpu-box", "cy-0")
    asks(planner, ("first", ALICE))
    [started] = planner.decide(NOON).placements
    assert started.workload == "first"
    asks(planner, ("alice-again", ALICE), ("bobs", BOB))
    assert list(planner.line) == ["bobs", "alice-again"]


def test_who_has_left_the_line_owes_nothing_for_having_stood_there() -> None:
    """A change of mind costs no place."""
    planner = a_full_box()
    planner.decide(NOON)
    asks(planner, ("one", ALICE), ("two", ALICE))
    planner.leave("one")
    planner.leave("two")
    asks(planner, ("alices", ALICE), ("bobs", BOB))
    assert list(planner.line) == ["alices", "bobs"]


def test_a_question_costs_no_place() -> None:
    """Whether something could start now is asked without standing anywhere for it."""
    planner = a_full_box()
    planner.decide(NOON)
    asks(planner, ("waits", ALICE))
    waiter = planner.waiters["waits"]
    asked: Waiting = a_gpu_request("asked", asked_at=NOON + 5)
    for _ in range(3):
        with planner.line.visit(asked, waiter.request):
            assert list(planner.line) == ["waits", "asked"]
    assert list(planner.line) == ["waits"]
    asks(planner, ("alices", ALICE))
    owed = planner.line.place_of("alices").share
    asks(planner, ("bobs", BOB))
    planner.ask(a_gpu_request("bobs-second", principal=BOB, asked_at=NOON + 9))
    assert planner.line.place_of("bobs-second").share == pytest.approx(owed)


def test_a_request_yields_only_after_several_rejections() -> None:
    """One machine that is full says nothing of the request."""
    planner = a_full_box()
    planner.decide(NOON)
    requests = [("once", 1), ("thrice", 3), ("twice", 2), ("six", 6)]
    for name, rejections in requests:
        planner.ask(a_gpu_request(name, asked_at=NOON, rejections=rejections))
    yields = {name: planner.line.place_of(name).yields for name, _ in requests}
    assert yields == {"once": 0, "twice": 0, "thrice": 1, "six": 2}


def test_a_larger_fleet_makes_every_share_smaller() -> None:
    """What one start counts is a part of all that there is now."""
    planner = a_full_box()
    planner.decide(NOON)
    asks(planner, ("first", ALICE), ("second", ALICE))
    planner.rank_if_due(NOON + HOUR)
    before = planner.line.place_of("second").share
    held = tuple(
        an_allocation(f"new-{gpu}", devices=(f"GPU-new-{gpu}",), ends_by=None)
        for gpu in range(3)
    )
    planner.put_machine(
        a_gpu_box("new", gpus=3, sharing=OPEN, drivers=BOTH_DRIVERS, held=held)
    )
    planner.rank_if_due(NOON + 2 * HOUR)
    assert planner.line.place_of("second").share == pytest.approx(before / 4)


def test_the_rule_is_said_by_whom_it_puts_behind() -> None:
    """The first one of the line is compared with the next, and with nobody else."""
    planner = a_full_box()
    planner.decide(NOON)
    asks(planner, ("first", ALICE), ("second", BOB))
    planner.ask(a_gpu_request("last", asked_at=NOON + 9, rejections=3))
    assert planner.line.rule_of("first") is Rule.AGE
    planner.leave("second")
    assert planner.line.rule_of("first") is Rule.YIELDED
    assert planner.line.rule_of("last") is Rule.BACKFILL
    planner.leave("last")
    assert planner.line.rule_of("first") is Rule.ALONE


def test_the_line_is_ranked_anew_once_a_minute_and_after_a_clock_that_went_back() -> (
    None
):
    """Never more often, since a ranking looks at everybody; late is a minute later."""
    planner = a_planner()
    fair = FairUse(HOURLY_GPUS, planner.fleet, planner.line)
    assert fair.is_due(NOON)
    assert fair.is_overdue(NOON)
    fair.rank((), NOON)
    moments = (-1, 0, 59.5, 60, 119.5, 120)
    due = [fair.is_due(NOON + moment) for moment in moments]
    assert due == [True, False, False, True, True, True]
    overdue = [fair.is_overdue(NOON + moment) for moment in moments]
    assert overdue == [True, False, False, False, False, True]


# ---------------------------------------------------------------- disks and waits


def test_equal_machines_are_told_apart_by_their_disks() -> None:
    """Enough, too full now, too small for ever, or nobody knows."""
    held = an_allocation(disk_bytes=450 * GIB)
    planner = a_planner(
        a_machine("enough"),
        a_machine("exact", disk_free_bytes=100 * GIB),
        a_machine("full", held=(held,)),
        a_machine("small", disk_free_bytes=99 * GIB),
        a_machine("none", disk_free_bytes=0),
        a_machine("unknown", disk_free_bytes=None),
    )
    entries = planner.fleet.entries
    found = by_disk(entries, sorted(entries), 100 * GIB)
    assert found.enough == ["enough", "exact"]
    assert found.short == ["full"]
    assert found.small == ["none", "small"]
    assert found.unknown == ["unknown"]


def test_what_is_remembered_of_disks_ends_where_a_machine_changes() -> None:
    """A machine that was filled meanwhile is not taken for one with room."""
    planner = a_planner(a_machine("one"), a_machine("two"))
    entries = planner.fleet.entries
    disks, bucket, amount = Disks(entries), entries["one"].bucket, 100 * GIB
    assert disks.of(bucket, ["one", "two"], amount).enough == ["one", "two"]
    held = an_allocation(disk_bytes=450 * GIB)
    planner.put_machine(a_machine("one", held=(held,)))
    disks.changed(bucket, "one")
    assert disks.of(bucket, ["one", "two"], amount).enough == ["two"]


def test_how_a_start_compares_to_what_was_said_is_said_up_to_the_moment() -> None:
    """At the time that half should come by, it came by then."""
    said = Outset(since=0.0, bound=100.0, early=0.5, late=0.9)
    came = [said.came(moment) for moment in (0.0, 50.0, 50.5, 90.0, 90.5, 1000.0)]
    assert came == [
        *(Came.EARLY, Came.EARLY),
        *(Came.LATE, Came.LATE),
        *(Came.LATER, Came.LATER),
    ]
    assert Outset(since=0.0, bound=100.0).came(50.0) is None
    assert not said.is_outlasted(90.0)
    assert said.is_outlasted(90.5)
