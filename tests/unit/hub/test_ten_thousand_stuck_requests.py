"""Ten thousand stuck requests of one kind delay none of another, and are told right."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import pytest
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
    a_mac,
    a_machine,
    a_metal_class,
    a_profile,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.reasons import Reason
from fleet_hub.scheduling.explain import what_if
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import MachineState
from fleet_hub.scheduling.telling import waits


MANY = 10_000
A_SECOND = 1.0
"""How long the one that has room may take, all ten thousand notwithstanding."""
CLASSES = (
    a_class("cpu", labels={"kind": "plain"}),
    a_class("large", cpu_milli=8000, labels={"kind": "plain"}),
    a_gpu_class("gpu"),
    a_metal_class("metal"),
)
CATALOG = a_catalog(
    classes=CLASSES,
    profiles=(a_profile(classes=tuple(item.name for item in CLASSES)),),
)


def a_cpu_box(**fields: object) -> MachineState:
    """Return everybody's machine for CPU work, idle unless told otherwise."""
    box = a_machine("cpu-box", **({"sharing": OPEN, "drivers": BOTH_DRIVERS} | fields))
    return replace(box, labels={"kind": "plain"})


def everything() -> dict[str, MachineState]:
    """Return an idle machine for each kind of work."""
    return {
        "cpu": a_cpu_box(),
        "gpu": a_gpu_box(sharing=OPEN, drivers=BOTH_DRIVERS),
        "metal": a_mac(),
    }


HELD = {
    "cpu": an_allocation("holder", cpu_milli=8000),
    "gpu": an_allocation("holder", devices=("GPU-gpu-box-0",)),
    "metal": an_allocation("holder", owner="alice", user_id=1, metal=True),
}
BUSY = {
    "cpu": Reason.CPU_BUSY,
    "gpu": Reason.GPU_BUSY,
    "metal": Reason.METAL_BUSY,
}


def a_stuck_line(kind: str) -> Planner:
    """Return the engine of a fleet in which ten thousand wait for *kind* in vain."""
    machines = everything()
    machines[kind] = replace(machines[kind], held=(HELD[kind],))
    waiting = tuple(
        a_waiting(f"stuck-{number:05}", class_name=kind, asked_at=NOON - MANY + number)
        for number in range(MANY)
    )
    planner = planner_of(
        a_snapshot(catalog=CATALOG, machines=tuple(machines.values()), waiting=waiting)
    )
    assert planner.decide(NOON).placements == ()
    return planner


def seconds_of(deed: Callable[[], object]) -> float:
    """Return how much of this processor's time *deed* takes."""
    began = time.process_time()
    deed()
    return time.process_time() - began


@pytest.mark.parametrize(("stuck", "last"), [*permutations(("cpu", "gpu", "metal"), 2)])
def test_one_for_something_else_starts_within_a_second(stuck: str, last: str) -> None:
    """At the very end of the line, and whichever kind is the one that is stuck.

    Everybody is told right all the same: what they wait for, and how many before them.
    """
    planner = a_stuck_line(stuck)
    who = a_waiting("last", class_name=last, asked_at=NOON + 1)
    if last != "metal":
        who = replace(who, principal=BOB)
    started: list[str] = []

    def decide() -> None:
        planner.ask(who)
        decided = planner.decide(NOON + 1)
        started.extend(item.workload for item in decided.placements)

    assert seconds_of(decide) < A_SECOND
    assert started == ["last"]

    found = list(waits(planner, examples=False))
    assert len(found) == MANY
    assert [item.position for item in found] == list(range(MANY))
    assert Counter(item.explanation.reason for item in found) == {BUSY[stuck]: MANY}
    assert {item.explanation.holders[0].workload for item in found} == {"holder"}


def test_a_question_among_ten_thousand_is_answered_within_a_second() -> None:
    """What is free is startable, what is stuck says behind how many."""
    planner = a_stuck_line("gpu")
    free = what_if(planner, BOB, "lab", "cpu")
    stuck = what_if(planner, ALICE, "lab", "gpu")
    assert free.startable
    assert stuck.ahead == MANY
    assert stuck.explanation is not None
    assert stuck.explanation.reason is Reason.GPU_BUSY
    assert seconds_of(lambda: what_if(planner, BOB, "lab", "gpu")) < A_SECOND


def test_one_that_frees_is_given_to_the_first_of_ten_thousand_within_a_second() -> None:
    """And to nobody else; the others move up by one."""
    planner = a_stuck_line("gpu")
    started: list[str] = []

    def decide() -> None:
        planner.release("gpu-box", "holder")
        decided = planner.decide(NOON + 1)
        started.extend(item.workload for item in decided.placements)

    assert seconds_of(decide) < A_SECOND
    assert started == ["stuck-00000"]
    (second,) = waits(planner, ["stuck-00001"])
    (last,) = waits(planner, [f"stuck-{MANY - 1:05}"])
    assert (second.position, last.position) == (0, MANY - 2)


def test_ten_thousand_that_want_all_of_a_machine_delay_none_that_wants_a_part() -> None:
    """Of the same kind even: seven cores are free, and one is wanted."""
    held = an_allocation("holder", cpu_milli=1000)
    waiting = tuple(
        a_waiting(f"stuck-{number:05}", class_name="large", asked_at=NOON - 60)
        for number in range(MANY)
    )
    planner = planner_of(
        a_snapshot(
            catalog=CATALOG, machines=(a_cpu_box(held=(held,)),), waiting=waiting
        )
    )
    assert planner.decide(NOON).placements == ()
    planner.ask(a_waiting("last", class_name="cpu", principal=BOB, asked_at=NOON))
    (placement,) = planner.decide(NOON).placements
    assert placement.workload == "last"


def test_ten_thousand_that_leave_the_line_leave_nothing_behind() -> None:
    """A line that was long is as quick and as right as one that never was."""
    planner = a_stuck_line("gpu")
    for number in range(MANY):
        planner.leave(f"stuck-{number:05}")
    planner.release("gpu-box", "holder")
    planner.ask(a_waiting("only", class_name="gpu", asked_at=NOON + 1))
    (placement,) = planner.decide(NOON + 1).placements
    assert placement.workload == "only"
    assert list(waits(planner)) == []
