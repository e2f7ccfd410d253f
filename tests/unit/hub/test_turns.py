"""Which turn came by which rule, how long it took, and what else could start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from controller_catalogs import a_catalog as a_fleets_catalog
from fleet_controller import Fleet
from scheduling_builders import (
    BOB,
    BOTH_DRIVERS,
    GIB,
    NOON,
    OPEN,
    a_busy_box,
    a_catalog,
    a_class,
    a_gpu_box,
    a_gpu_class,
    a_gpu_request,
    a_mac,
    a_machine,
    a_metal_class,
    a_planner,
    a_profile,
    an_allocation,
)

from fleet_contracts.catalog import Audience, Quota, ResourceClass
from fleet_contracts.placement_facts import PlacementFacts
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import WorkloadKind
from fleet_hub.controller import governing
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.records import Decided, Workload
from fleet_hub.controller.turns import DAY_SECONDS, LEAST, MOST, Turns
from fleet_hub.scheduling.decisions import Rule
from fleet_hub.scheduling.places import Places, places_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Usage
from fleet_hub.service.class_rows import class_rows
from fleet_hub.service.turn_pages import RULES, turn_rows


# ------------------------------------------------------------------------ the rule


def rules(planner: Planner) -> dict[str, Rule]:
    """Return by which rule each one starts now."""
    placed = planner.decide(NOON).placements
    return {placement.workload: placement.rule for placement in placed}


def test_the_rule_is_what_the_next_one_in_the_line_has_less_of() -> None:
    """Priority before fair share, and fair share before age."""
    box = a_gpu_box("box", sharing=OPEN, drivers=BOTH_DRIVERS)
    first = a_gpu_request("first", asked_at=NOON - 60)
    for next_one, rule in (
        (None, Rule.ALONE),
        (a_gpu_request("next", asked_at=NOON - 30), Rule.SHARE),
        (replace(first, workload="next", priority=-1), Rule.PRIORITY),
        (replace(first, workload="next", principal=BOB, rejections=3), Rule.YIELDED),
        (
            a_gpu_request("next", principal=BOB, asked_at=NOON - 30),
            Rule.AGE,
        ),
    ):
        waiting = (first,) if next_one is None else (first, next_one)
        assert rules(a_planner(box, waiting=waiting)) == {"first": rule}
    planner = a_planner(
        box,
        waiting=(first, a_gpu_request("next", principal=BOB, asked_at=NOON - 90)),
        usage={2: Usage(amount=1.0, as_of=NOON)},
    )
    assert rules(planner) == {"first": Rule.SHARE}


def test_who_starts_past_others_says_so() -> None:
    """They wait for something else, and none of them starts later for it."""
    planner = a_planner(
        a_busy_box("box", gpus=2),
        a_gpu_box("one"),
        waiting=(
            a_gpu_request("pair", class_name="pair", asked_at=NOON - 90),
            a_gpu_request("short", asked_at=NOON - 70),
        ),
    )
    assert rules(planner) == {"short": Rule.BACKFILL}


def test_every_rule_has_words() -> None:
    """For the page of the line."""
    assert RULES.keys() == set(Rule)


# ------------------------------------------------------------------------- places


def places(planner: Planner, name: str) -> Places:
    """Return how often the class could start."""
    chosen = planner.catalog.class_named(name)
    assert chosen is not None
    return places_of(planner, chosen)


def test_places_are_counted_beside_what_runs_and_as_if_nothing_did() -> None:
    """By devices, and by the cores and the memory that such a start takes."""
    planner = a_planner(a_busy_box("box", gpus=4), a_gpu_box("full", gpus=2))
    assert places(planner, "gpu") == Places(free=5, total=6)
    assert places(planner, "pair") == Places(free=2, total=3)
    held = an_allocation(cpu_milli=7000)
    small = a_planner(a_machine(held=(held,)), a_machine("other"), catalog=a_catalog())
    assert places(small, "cpu") == Places(free=1 + 8, total=16)
    assert places(small, "gpu") == Places(free=0, total=0)


def test_a_mac_has_one_place_and_disks_are_looked_at_one_by_one() -> None:
    """Equal machines may have unequal disks."""
    large = a_class("large", disk_bytes=200 * GIB)
    planner = a_planner(
        a_mac(),
        a_machine("wide", disk_free_bytes=500 * GIB),
        a_machine("tight", disk_free_bytes=100 * GIB),
        catalog=a_catalog(classes=(large, a_metal_class(), a_gpu_class())),
    )
    assert places(planner, "metal") == Places(free=1, total=1)
    # The Mac's own disk holds one as well: a program there takes its GPU.
    assert places(planner, "large") == Places(free=3, total=3)


def test_machines_that_take_nothing_are_left_out() -> None:
    """And a class that nobody may start has no place."""
    classes = (a_class("cpu"), a_class("closed"), a_class("served"))
    planner = a_planner(
        a_machine("away", online=False),
        a_machine("here"),
        catalog=a_catalog(
            classes=classes,
            profiles=(
                a_profile(
                    classes=("cpu",),
                    audience=Audience(everyone=False, users=("alice",)),
                ),
                a_profile("model", classes=("served",), kind=WorkloadKind.ENDPOINT),
            ),
        ),
    )
    assert places(planner, "cpu") == Places(free=8, total=8)
    assert places(planner, "closed") == Places(free=0, total=0)
    served = places(planner, "served")
    assert (served.free, served.total) == (0, 0)
    assert served.barred is not None
    assert served.barred.reason is Reason.ENDPOINTS_NOT_BUILT


@pytest.mark.parametrize(
    "trouble",
    [{"online": False}, {"draining_by": "an admin"}, {"inventory_known": False}],
)
def test_a_machine_that_takes_nothing_now_is_no_missing_machine(
    trouble: dict[str, Any],
) -> None:
    """It may take work again; where none is large enough that helps nobody."""
    planner = a_planner(a_machine("box", **trouble), catalog=a_catalog())
    assert places(planner, "cpu") == Places(free=0, total=0, none_now=True)
    assert places(planner, "gpu") == Places(free=0, total=0)
    unknown = a_planner(a_machine("box", facts=PlacementFacts(), online=False))
    assert places(unknown, "gpu").none_now, "nobody knows what it has"
    disk = a_class("disk", disk_bytes=900 * GIB)
    small = a_planner(
        a_machine("box", disk_free_bytes=100 * GIB, **trouble),
        catalog=a_catalog(classes=(disk,)),
    )
    assert places(small, "disk") == Places(free=0, total=0)


BIO_ONLY = Audience(everyone=False, groups=("bio",))


@pytest.mark.parametrize(
    ("audience", "quota", "subject"),
    [
        (BIO_ONLY, Quota(group="bio", devices=1), "bio"),
        (BIO_ONLY, Quota(group="*", devices=1), "bio"),
        (
            Audience(everyone=False, groups=("bio", "chem")),
            Quota(group="bio", devices=1),
            None,
        ),
        (
            Audience(everyone=False, users=("dee",), groups=("bio",)),
            Quota(group="bio", devices=1),
            None,
        ),
        (
            Audience(everyone=False, users=("dee",)),
            Quota(user="dee", devices=1),
            "dee",
        ),
        (Audience(), Quota(group="bio", devices=1), None),
        (Audience(), Quota(user="*", devices=1), ""),
    ],
)
def test_a_class_above_the_quota_of_all_who_may_ask_names_the_quota(
    audience: Audience, quota: Quota, subject: str | None
) -> None:
    """And one that somebody of the audience may have is counted for them."""
    pair = a_gpu_class("pair", devices=2)
    planner = a_planner(
        a_gpu_box("box", gpus=2),
        catalog=a_catalog(
            classes=(pair,),
            profiles=(a_profile(classes=("pair",), audience=audience),),
            quotas=(quota,),
        ),
    )
    found = places(planner, "pair")
    if subject is None:
        assert found == Places(free=1, total=1)
        return
    assert (found.free, found.total) == (0, 0)
    assert found.barred is not None
    assert found.barred.reason is Reason.EXCEEDS_QUOTA_EVER
    assert (found.barred.subject or "") == subject
    assert (found.barred.requested, found.barred.capacity) == (2, 1)


def test_the_page_says_why_a_class_has_no_place() -> None:
    """A quota by its name, a drained fleet as one, and a class that nobody offers."""
    classes = (
        *a_fleets_catalog().classes,
        ResourceClass(name="spare", title="Spare", cpu_milli=1000, memory_bytes=GIB),
    )
    audience = Audience(everyone=False, groups=("bio",))
    (profile,) = a_fleets_catalog().profiles
    fleet = Fleet(
        catalog=a_fleets_catalog(
            classes=classes,
            profiles=(profile.model_copy(update={"audience": audience}),),
            quotas=(Quota(group="bio", cpu_milli=2000),),
        )
    )
    fleet.machine()
    governing.drain(fleet.core, Actor(name="root", role=ActorRole.ADMIN), "box")
    states = {row.name: row.state for row in class_rows(fleet.core)}
    assert states == {
        "small": "no machine takes it now",
        "whole": (
            "This alone is more than the quota of bio: 4 cores asked for, "
            "2 cores allowed."
        ),
        "spare": "no profile offers it",
    }


# -------------------------------------------------------------- what is remembered


def a_turn(record: Workload, at: float, waited: float = 1.0) -> Workload:
    """Return *record* as one whose turn came."""
    decided = Decided(
        at=at, waited=waited, class_name="small", machine="box", rule=Rule.AGE
    )
    return replace(record, decided=decided)


def test_the_latest_are_remembered_in_order_and_no_more() -> None:
    """However they come, and without those that had no turn."""
    record = Fleet().ask()
    turns = Turns()
    turns.begin([a_turn(record, NOON + 1), record, a_turn(record, NOON)])
    assert [turn.decided.at for turn in turns.latest()] == [NOON + 1, NOON]
    for second in range(MOST):
        turns.note(a_turn(record, NOON + 10 + second))
    assert len(turns.latest()) == MOST
    assert turns.latest()[-1].decided.at == NOON + 10
    (newest,) = turn_rows(turns.latest()[:1])
    assert (newest.waited, newest.rule) == ("1 s", "asked first")


def test_waits_of_a_day_are_summed_up_from_twenty_on() -> None:
    """Fewer say nothing, and older ones do not count."""
    record, turns = Fleet().ask(), Turns()
    for number in range(1, LEAST):
        turns.note(a_turn(record, NOON, waited=float(number)))
    assert turns.waits("small", NOON) is None
    assert turns.waits("other", NOON) is None
    turns.note(a_turn(record, NOON, waited=20.0))
    found = turns.waits("small", NOON)
    assert found is not None
    assert (found.half, found.most, found.samples) == (10.0, 18.0, 20)
    assert turns.waits("small", NOON + DAY_SECONDS) is None


def test_a_turn_is_told_with_the_class_and_outlives_a_restart() -> None:
    """The last one of each server."""
    fleet = Fleet()
    agent = fleet.machine()
    first = fleet.ask(class_name="whole")
    second = fleet.ask(2, class_name="whole")
    fleet.clock.advance(90)
    small, whole = class_rows(fleet.core)
    assert (whole.name, whole.starting, whole.waiting) == ("whole", 1, 1)
    assert (whole.places, whole.state, whole.glyph) == (Places(0, 1), "busy", "●")
    assert (whole.oldest, whole.half, whole.most) == ("1 min 30 s", "—", "—")
    assert (small.waiting, small.oldest) == (0, "—")
    assert first.assignment is not None
    agent.serve(first.assignment.allocation)
    for _ in range(LEAST):
        fleet.core.model.turns.note(fleet.get(first))
    (_, whole) = class_rows(fleet.core)
    assert (whole.half, whole.most, whole.mark) == ("0 s", "0 s", "running")
    assert fleet.get(second).decided is None

    again = fleet.restarted()
    (turn,) = again.core.model.turns.latest()
    assert (turn.user, turn.decided.machine, turn.decided.rule) == (
        "alice",
        "box",
        Rule.ALONE,
    )
    assert {row.state for row in class_rows(again.core)} == {"no machine takes it now"}
    assert not any(row.places.total for row in class_rows(again.core))


def test_an_idle_fleet_is_open() -> None:
    """In words and with a sign."""
    fleet = Fleet()
    fleet.machine()
    states = {(row.state, row.glyph, row.mark) for row in class_rows(fleet.core)}
    assert states == {("open", "✓", "done")}


def test_a_profile_for_nobody_gives_its_class_no_place() -> None:
    """There is nobody to ask for."""
    planner = a_planner(
        a_machine(),
        catalog=a_catalog(
            classes=(a_class("cpu"),),
            profiles=(a_profile(classes=("cpu",), audience=Audience(everyone=False)),),
        ),
    )
    assert places(planner, "cpu") == Places(free=0, total=0)
