"""Nobody who runs is stopped for a higher priority; a free class is told and taken."""

from __future__ import annotations

from dataclasses import replace

import pytest
from controller_catalogs import a_catalog as a_controllers_catalog
from fleet_builders import a_principal
from fleet_controller import Fleet, allocation_of
from scheduling_builders import (
    ALICE,
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

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Profile
from fleet_contracts.changes import ChangeKind
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Reason
from fleet_hub.controller import moving, stopping
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.moving import Place
from fleet_hub.scheduling.explain import what_if
from fleet_hub.scheduling.inspection import inspect_waiting
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import MachineState
from fleet_hub.scheduling.telling import waits


HOUR = 3600.0
PRIORITIES = {"low": 0, "medium": 5, "high": 10}
CATALOG = a_catalog(
    classes=(
        a_gpu_class("a", labels={"kind": "a"}, limit_seconds=HOUR),
        a_gpu_class("b", labels={"kind": "b"}, limit_seconds=HOUR),
    ),
    profiles=tuple(
        a_profile(name, classes=("a", "b"), priority=priority)
        for name, priority in PRIORITIES.items()
    ),
)


def a_box(kind: str, holder: str | None) -> MachineState:
    """Return everybody's machine of one GPU for class *kind*, held by *holder*."""
    name = f"box-{kind}"
    held = ()
    if holder is not None:
        held = (an_allocation(holder, devices=(f"GPU-{name}-0",), ends_by=NOON + HOUR),)
    box = a_gpu_box(name, sharing=OPEN, drivers=BOTH_DRIVERS, held=held)
    return replace(box, labels={"kind": kind})


def a_fleet(*, a: str | None = "high", b: str | None = "low") -> Planner:
    """Return one in which *a* holds the one class and *b* the other."""
    return planner_of(
        a_snapshot(catalog=CATALOG, machines=(a_box("a", a), a_box("b", b)))
    )


def ask(planner: Planner, profile: str, class_name: str, second: float = 0) -> None:
    """Let somebody ask with this priority, called by it and the class."""
    planner.ask(
        a_waiting(
            f"{profile}-{class_name}",
            principal=BOB,
            profile=profile,
            class_name=class_name,
            asked_at=NOON + second,
        )
    )


def running(planner: Planner) -> dict[str, set[str]]:
    """Return what holds something of each machine."""
    return {
        name: set(entry.allocations) for name, entry in planner.fleet.entries.items()
    }


@pytest.mark.parametrize("class_name", ["a", "b"])
def test_a_medium_request_stops_neither_a_high_nor_a_low_one(class_name: str) -> None:
    """High runs on the one class, low on the other: it waits for the one it chose."""
    planner = a_fleet()
    before = running(planner)
    ask(planner, "medium", class_name)
    for second in range(3):
        assert planner.decide(NOON + second).placements == ()
    assert running(planner) == before
    (wait,) = waits(planner)
    assert wait.explanation.reason is Reason.GPU_BUSY
    # Who has it and until when: not "preemption is not helpful".
    assert [holder.workload for holder in wait.explanation.holders] == [
        {"a": "high", "b": "low"}[class_name]
    ]
    assert wait.no_later_than is not None


def test_of_two_classes_the_one_that_is_free_is_taken() -> None:
    """It is the user's choice, which starts at once; the other would have waited."""
    planner = a_fleet(b=None)
    assert what_if(planner, BOB, "medium", "b").startable
    assert not what_if(planner, BOB, "medium", "a").startable
    ask(planner, "medium", "b")
    (placement,) = planner.decide(NOON).placements
    assert placement.machine == "box-b"


def test_who_waits_for_a_held_class_reads_that_the_other_is_free() -> None:
    """The way out is named, and never gone without being asked."""
    planner = a_fleet(b=None)
    ask(planner, "medium", "a")
    assert planner.decide(NOON).placements == ()
    changes = inspect_waiting(planner, "medium-a").changes
    assert (changes[0].kind, changes[0].instead, changes[0].free_now) == (
        ChangeKind.CLASS,
        "b",
        1,
    )


def test_what_frees_goes_by_priority_and_not_by_age() -> None:
    """The medium one was the last to ask, and is the first to start."""
    planner = a_fleet()
    ask(planner, "low", "b")
    ask(planner, "medium", "b", second=1)
    planner.decide(NOON + 1)
    planner.release("box-b", "low")
    (placement,) = planner.decide(NOON + 2).placements
    assert placement.workload == "medium-b"
    assert running(planner)["box-b"] == {"medium-b"}


def test_a_high_priority_for_one_class_does_not_hold_up_the_other() -> None:
    """A line of urgent ones for the held class, and a low one for the free class."""
    planner = a_fleet(b=None)
    for number in range(20):
        planner.ask(
            a_waiting(
                f"high-{number}",
                principal=ALICE,
                profile="high",
                class_name="a",
                asked_at=NOON - 60,
            )
        )
    ask(planner, "low", "b")
    (placement,) = planner.decide(NOON).placements
    assert placement.workload == "low-b"


def test_no_machine_hears_a_stop_for_somebody_who_is_more_urgent() -> None:
    """Not for priority, an admin's word, or both; the one who runs ends by themselves."""
    profiles = tuple(
        Profile(
            name=name,
            title=name,
            classes=("small", "whole"),
            runtimes=("python",),
            priority=priority,
        )
        for name, priority in (("jupyter", 0), ("urgent", 1_000_000))
    )
    fleet = Fleet(catalog=a_controllers_catalog(profiles=profiles))
    agent = fleet.machine()
    runs = fleet.ask(1, class_name="whole")
    agent.serve(allocation_of(runs))
    preparing = fleet.machine("second")
    prepared = fleet.ask(2, class_name="whole")
    urgent = fleet.ask(3, class_name="whole", profile="urgent", principal=a_principal())
    root = Actor(name="root", role=ActorRole.ADMIN, why="a course begins")
    moving.move(fleet.core, fleet.get(urgent), Place.FIRST, by=root)
    for _ in range(100):
        fleet.clock.advance(60)
        fleet.cycle()
    assert agent.stops() == preparing.stops() == []
    assert fleet.get(runs).state is State.READY
    assert fleet.get(prepared).assignment is not None
    assert fleet.get(urgent).state is State.QUEUED

    stopping.stop(fleet.core, fleet.get(runs))
    agent.report(allocation_of(runs), AgentEvent.ENDED)
    fleet.cycle()
    assert fleet.get(urgent).assignment is not None
