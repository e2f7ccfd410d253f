"""Where a holder has no known end: no time is told, and what has one is suggested."""

from __future__ import annotations

from datetime import UTC, datetime

from scheduling_builders import (
    ALICE,
    BOB,
    BOTH_DRIVERS,
    NOON,
    OPEN,
    a_catalog,
    a_class,
    a_gpu,
    a_gpu_box,
    a_gpu_class,
    a_machine,
    a_profile,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.catalog import Catalog
from fleet_contracts.changes import ChangeKind, change_sentence
from fleet_contracts.reasons import Reason
from fleet_contracts.sentences import sentence
from fleet_hub.scheduling.explain import what_if
from fleet_hub.scheduling.inspection import inspect_request, inspect_waiting
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import MachineState


HOUR = 3600.0


def the_catalog(*names: str) -> Catalog:
    """Return a profile with these of a large GPU, a small GPU and a CPU class."""
    classes = {
        "large": a_gpu_class("large", device_models=("large",)),
        "small": a_gpu_class("small", device_models=("small",)),
        "cpu": a_class("cpu", limit_seconds=HOUR),
    }
    chosen = tuple(classes[name] for name in names)
    return a_catalog(classes=chosen, profiles=(a_profile(classes=names),))


def a_held_box(model: str, *, ends_by: float | None) -> MachineState:
    """Return a box whose GPU somebody has, until *ends_by* or without an end."""
    device = a_gpu(f"GPU-{model}", name=model)
    held = an_allocation(f"holds-{model}", devices=(device.uuid,), ends_by=ends_by)
    return a_gpu_box(
        f"{model}-box",
        devices=(device,),
        sharing=OPEN,
        drivers=BOTH_DRIVERS,
        held=(held,),
    )


def a_line(catalog: Catalog, *machines: MachineState) -> Planner:
    """Return an engine with one that waits for a large GPU."""
    waiting = (a_waiting("w", class_name="large", principal=BOB),)
    snapshot = a_snapshot(catalog=catalog, machines=machines, waiting=waiting)
    planner = planner_of(snapshot)
    planner.decide(NOON)
    return planner


def the_boxes() -> tuple[MachineState, MachineState]:
    """Return a large GPU without an end in sight, and a small one with an end."""
    return (
        a_held_box("large", ends_by=None),
        a_held_box("small", ends_by=NOON + HOUR),
    )


def test_a_holder_without_an_end_gives_no_time_and_says_so() -> None:
    """No time is told for what nobody knows, neither at once nor as a guess."""
    planner = a_line(the_catalog("large"), *the_boxes())
    found = inspect_waiting(planner, "w")
    verdict = found.verdict
    assert verdict.no_later_than is None
    assert verdict.explanation is not None
    assert verdict.explanation.reason is Reason.GPU_BUSY
    assert "no known end" in sentence(verdict.explanation)
    assert found.changes == ()


def test_a_class_that_has_a_time_is_suggested_where_the_asked_one_has_none() -> None:
    """For who waits, for a mere question and on the spawn form alike."""
    planner = a_line(the_catalog("large", "small"), *the_boxes())
    line = list(planner.line)
    (change,) = inspect_waiting(planner, "w").changes
    assert (change.kind, change.requested, change.instead) == (
        ChangeKind.CLASS,
        "large",
        "small",
    )
    assert (change.machines, change.free_now) == (1, 0)
    bound = what_if(planner, BOB, "lab", "small").no_later_than
    assert bound is not None
    assert change.starts_by == datetime.fromtimestamp(bound, UTC)
    told = change_sentence(change)
    assert told == (
        "With the class small instead of large: 1 machine, it starts no later than "
        f"{change.starts_by:%Y-%m-%d %H:%M} UTC."
    )
    asked = a_waiting("?", class_name="large", principal=BOB)
    assert inspect_request(planner, asked).changes == (change,)
    assert what_if(planner, BOB, "lab", "large").change == change
    # Asking leaves the line as it was.
    assert list(planner.line) == line
    assert planner.waiters.keys() == {"w"}


def test_a_class_that_starts_now_comes_first() -> None:
    """What is free is better than any time."""
    catalog = the_catalog("large", "small", "cpu")
    planner = a_line(catalog, *the_boxes(), a_machine("plain", sharing=OPEN))
    (change,) = inspect_waiting(planner, "w").changes
    assert (change.instead, change.starts_by) == ("cpu", None)
    assert change.free_now


def test_where_a_time_is_known_or_nothing_has_one_no_other_class_is_suggested() -> None:
    """A suggestion is for those who are told no time."""
    timed = a_held_box("large", ends_by=NOON + HOUR)
    small = the_boxes()[1]
    planner = a_line(the_catalog("large", "small"), timed, small)
    assert inspect_waiting(planner, "w").verdict.no_later_than is not None
    assert inspect_waiting(planner, "w").changes == ()
    endless = a_held_box("small", ends_by=None)
    planner = a_line(the_catalog("large", "small"), the_boxes()[0], endless)
    assert inspect_waiting(planner, "w").changes == ()
    assert what_if(planner, ALICE, "lab", "large").change is None
