"""Who has what one waits for, how much, since when, until when, and when one's turn is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from fleet_builders import NOON, a_principal
from fleet_controller import Fleet, allocation_of
from fleet_pictures import a_picture, some_gpus
from prometheus_client.parser import text_string_to_metric_families
from scenario_fleets import a_box, another, the_catalog
from scheduling_builders import a_class, a_gpu_class
from told_everywhere import (
    answer_to,
    in_a_terminal,
    rows,
    the_line,
    timeline_to,
    told,
    what_if,
)

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Relation
from fleet_contracts.changes import ChangeKind
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Reason, ReasonKind
from fleet_contracts.sentences import sentence
from fleet_contracts.workloads import DriverName
from fleet_hub.controller import governing, moving
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.moving import Place
from fleet_hub.controller.records import Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.service.metrics import Metrics


ROOT = Actor(name="root", role=ActorRole.ADMIN)
HOUR = 3600.0
BOB = a_principal("bob", 2)


def a_fleet(gpus: int = 1, *, settings: Settings | None = None, **limits: Any) -> Fleet:
    """Return a box that serves everybody, with classes of an hour and without a limit."""
    catalog = the_catalog(
        a_gpu_class("gpu", limit_seconds=HOUR),
        a_gpu_class("endless"),
        a_class("cpu", limit_seconds=HOUR),
    )
    lab = catalog.profiles[0]
    urgent = lab.model_copy(update={"name": "urgent", "priority": 5})
    fleet = a_box(
        catalog.model_copy(update={"profiles": (lab, urgent)}),
        settings=settings,
        driver=DriverName.SIMULATION,
        gpus=some_gpus("box", gpus),
    )
    lend(fleet, "box")
    return fleet


def lend(fleet: Fleet, machine: str) -> None:
    """Let the machine serve everybody."""
    for allow in (governing.set_audience, governing.set_lending):
        allow(fleet.core, ROOT, machine, Relation.GUEST)
    fleet.cycle()


def a_holder(fleet: Fleet, server: int, class_name: str, **who: Any) -> Workload:
    """Let somebody have a server of this class that is ready."""
    record = another(fleet, server, class_name, **who)
    fleet.agents["box"].serve(allocation_of(record))
    fleet.cycle()
    return fleet.get(record)


def ends(fleet: Fleet, record: Workload) -> None:
    """Let the machine confirm the end of *record*, and the next one begin."""
    fleet.agents["box"].report(allocation_of(fleet.get(record)), AgentEvent.ENDED)
    fleet.cycle()


def test_who_holds_it_is_told_with_owner_amount_since_and_until_when() -> None:
    """Each of them, the first to end first; the same in REST, timeline and terminal."""
    fleet = a_fleet(gpus=2)
    first = a_holder(fleet, 1, "gpu", principal=BOB)
    fleet.clock.advance(600)
    a_holder(fleet, 2, "gpu", principal=a_principal("cy", 3))
    record = another(fleet, 3, "gpu")
    why = told(fleet, record)
    assert why.reason is Reason.GPU_BUSY
    assert [(one.owner, one.amount, one.title) for one in why.holders] == [
        ("bob", 1, "lab"),
        ("cy", 1, "lab"),
    ]
    began = NOON + timedelta(seconds=HOUR)
    assert [one.since for one in why.holders] == [
        began,
        began + timedelta(seconds=600),
    ]
    assert why.holders[0].workload == first.id
    bounds = [one.ends_by for one in why.holders]
    assert None not in bounds
    assert bounds == sorted(bounds, key=lambda bound: bound or NOON)
    text = in_a_terminal(answer_to(fleet, record))
    assert "held by bob (lab) until 14:" in text


def test_where_names_are_private_the_amounts_and_times_of_a_holder_stay() -> None:
    """And the reader's own work keeps its name."""
    fleet = a_fleet(gpus=2, settings=Settings(names_visible=False))
    a_holder(fleet, 1, "gpu", principal=BOB)
    a_holder(fleet, 2, "gpu")
    why = told(fleet, another(fleet, 3, "gpu"))
    assert [(one.owner, one.title, one.amount) for one in why.holders] == [
        (None, None, 1),
        ("alice", "lab", 1),
    ]
    assert all(one.since and one.ends_by for one in why.holders)
    assert "held by somebody else until" in sentence(why)
    assert "bob" not in in_a_terminal(what_if(fleet, "alice", "lab", "gpu"))


def test_with_five_ahead_one_is_told_a_bound_and_after_enough_starts_what_is_likely() -> (
    None
):
    """The bound is the sum of the limits; likely is how the last waits really went."""
    fleet = a_fleet()
    metrics = Metrics(fleet.core)
    line = [
        another(fleet, number, "gpu", principal=a_principal(f"u{number}", number))
        for number in range(1, 9)
    ]
    for number in range(9, 60):
        running = next(one for one in line if fleet.get(one).state is State.PLACED)
        fleet.agents["box"].serve(allocation_of(fleet.get(running)))
        fleet.clock.advance(300)
        ends(fleet, running)
        line.remove(running)
        line.append(
            another(fleet, number, "gpu", principal=a_principal(f"u{number}", number))
        )
    waiting = the_line(fleet).waiting
    assert len(waiting) == 7
    sixth = next(one for one in waiting if one.ahead == 5)
    assert sixth.no_later_than is not None
    assert sixth.likely is not None
    now = fleet.clock.now()
    assert now < sixth.likely.early <= sixth.likely.late <= sixth.no_later_than
    assert sixth.no_later_than - now >= timedelta(seconds=6 * HOUR - 300)
    # Every wait took seven turns of five minutes; six of them are left.
    assert sixth.likely.late - now < timedelta(seconds=HOUR)
    record = next(one for one in line if one.id == sixth.workload)
    limits = timeline_to(fleet, record).limits
    assert (limits.starts_by, limits.likely) == (sixth.no_later_than, sixth.likely)
    came = {
        sample.labels["came"]: sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        if family.name == "jupyterhub_fleet_likely_starts"
        for sample in family.samples
        if sample.name.endswith("_total")
    }
    assert sum(came.values()) > 20
    assert came.get("early", 0) + came.get("late", 0) >= 0.9 * sum(came.values())


def broken(fleet: Fleet, record: Workload) -> list[str]:
    """Return what the timeline says of promises that were not kept, row by row."""
    return [
        sentence(event.explanation)
        for event in rows(fleet, record, Reason.PROMISE_BROKEN)
        if event.explanation is not None
    ]


def test_each_promise_that_a_higher_priority_moves_is_told_once_with_by_whom() -> None:
    """One row for whoever was made later, and none for anybody else."""
    fleet = a_fleet()
    a_holder(fleet, 1, "gpu")
    second, third = another(fleet, 2, "gpu"), another(fleet, 3, "gpu")
    before = timeline_to(fleet, second).limits.starts_by
    fleet.ask(4, principal=BOB, profile="urgent", class_name="gpu")
    for _ in range(3):
        fleet.core.want_cycle()
        fleet.cycle()
    after = timeline_to(fleet, second).limits.starts_by
    assert before is not None
    assert after is not None
    assert after > before
    assert broken(fleet, second) == [
        (
            "On box, the promised time cannot be kept because a server of bob has a "
            "higher priority."
        )
    ]
    assert broken(fleet, third) == []


def test_each_cause_that_moves_a_promise_later_is_told_in_a_row_of_its_own() -> None:
    """An admin's word, a machine that is drained, one that goes: each once, by name."""
    fleet = a_fleet()
    a_holder(fleet, 1, "gpu")
    second, third = another(fleet, 2, "gpu"), another(fleet, 3, "gpu", principal=BOB)
    moving.move(fleet.core, fleet.get(third), Place.FIRST, by=ROOT)
    fleet.cycle()
    assert broken(fleet, second) == [
        (
            "On box, the promised time cannot be kept because an admin put a server of "
            "bob first in the line."
        )
    ]
    governing.drain(fleet.core, ROOT, "box")
    fleet.cycle()
    [*_, drained] = broken(fleet, second)
    assert "because it takes nothing new: it is being drained" in drained
    assert len(broken(fleet, second)) == 2
    assert len(broken(fleet, third)) == 1


def test_a_holder_without_an_end_gives_no_time_and_another_class_that_has_one() -> None:
    """It is said that no end is known, and what has a time is suggested with it."""
    fleet = a_fleet()
    fleet.machine(
        "cpu-box", capabilities=a_picture(driver=DriverName.SIMULATION, cores=1)
    )
    lend(fleet, "cpu-box")
    a_holder(fleet, 1, "endless", principal=BOB)
    # Both machines are full of cores; on one of them the end is known.
    for server in range(2, 10):
        another(fleet, server, "cpu", principal=BOB)
    record = another(fleet, 20, "gpu")
    why = told(fleet, record)
    assert (why.reason, why.kind) == (Reason.GPU_BUSY, ReasonKind.BUSY)
    assert [one.ends_by for one in why.holders] == [None]
    assert "with no known end" in sentence(why)
    answer = answer_to(fleet, record)
    assert (answer.no_later_than, answer.likely) == (None, None)
    limits = timeline_to(fleet, record).limits
    assert (limits.starts_by, limits.likely) == (None, None)
    [help_] = answer.changes
    assert (help_.change.kind, help_.change.instead) == (ChangeKind.CLASS, "cpu")
    assert help_.change.starts_by is not None
    assert "class cpu instead of gpu" in in_a_terminal(answer)
    assert what_if(fleet, "alice", "lab", "gpu").changes == answer.changes


@pytest.mark.parametrize("class_name", ["gpu", "endless"])
def test_behind_work_without_an_end_that_is_itself_promised_nobody_gets_a_time(
    class_name: str,
) -> None:
    """Whoever is next knows when; whoever comes after it does only where it ends."""
    fleet = a_fleet()
    a_holder(fleet, 1, "gpu", principal=BOB)
    following = another(fleet, 2, class_name, principal=BOB)
    last = another(fleet, 3, "gpu")
    assert timeline_to(fleet, following).limits.starts_by is not None
    bound = timeline_to(fleet, last).limits.starts_by
    assert (bound is None) is (class_name == "endless")
