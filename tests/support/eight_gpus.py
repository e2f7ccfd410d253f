"""Boxes of eight GPUs for large jobs and small ones, and the line in front of them."""

from __future__ import annotations

from scheduling_builders import (
    BOB,
    BOTH_DRIVERS,
    NOON,
    OPEN,
    a_catalog,
    a_gpu_box,
    a_gpu_class,
    a_profile,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.reasons import Explanation
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import MachineState
from fleet_hub.scheduling.telling import waits


HOUR = 3600.0
CLASSES = (
    a_gpu_class("one", limit_seconds=HOUR),
    a_gpu_class("all", devices=8, limit_seconds=HOUR),
    a_gpu_class("one-endless"),
    a_gpu_class("all-endless", devices=8),
)
NAMES = tuple(item.name for item in CLASSES)
CATALOG = a_catalog(
    classes=CLASSES,
    profiles=(
        a_profile(classes=NAMES),
        a_profile("urgent", classes=NAMES, priority=5),
    ),
)


def a_box(name: str = "gpu-box", **fields: object) -> MachineState:
    """Return everybody's box of eight GPUs."""
    return a_gpu_box(
        name, **({"gpus": 8, "sharing": OPEN, "drivers": BOTH_DRIVERS} | fields)
    )


def a_full_box(name: str = "gpu-box", held: int = 8) -> MachineState:
    """Return one of which somebody has *held* GPUs, each without an end."""
    return a_box(
        name,
        held=tuple(
            an_allocation(f"{name}-{number}", devices=(f"GPU-{name}-{number}",))
            for number in range(held)
        ),
    )


def a_line(*machines: MachineState, **fields: object) -> Planner:
    """Return the engine of a fleet of *machines*, by default one that is idle."""
    values = {"catalog": CATALOG, "machines": machines or (a_box(),)}
    return planner_of(a_snapshot(**(values | fields)))


def ask(planner: Planner, workload: str, class_name: str, **fields: object) -> None:
    """Let somebody join the line now."""
    values = {"class_name": class_name, "asked_at": planner.now, "principal": BOB}
    planner.ask(a_waiting(workload, **(values | fields)))


def why(planner: Planner, workload: str) -> Explanation:
    """Return what a workload of the line is told."""
    (wait,) = waits(planner, [workload])
    return wait.explanation


def starts(planner: Planner, seconds: float) -> list[tuple[str, str]]:
    """Return who starts where this long after noon."""
    decided = planner.decide(NOON + seconds)
    return [(item.workload, item.machine) for item in decided.placements]
