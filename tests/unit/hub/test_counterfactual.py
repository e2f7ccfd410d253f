"""The smallest change that would make a request fit, and what it would bring."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scheduling_builders import (
    GIB,
    OPEN,
    a_catalog,
    a_class,
    a_gpu,
    a_gpu_class,
    a_machine,
    a_planner,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.catalog import Quota, Relation, ResourceClass, TrustPolicy
from fleet_contracts.changes import Change, ChangeKind, change_sentence
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName
from fleet_hub.scheduling import outlooks
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.inspection import Inspection, inspect_request, inspect_waiting
from fleet_hub.scheduling.outlooks import DRIVER_ORDER, look
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.relaxations import STEPS
from fleet_hub.scheduling.snapshot import MachineState, Pin, Sharing, Snapshot


def a_small_gpu(uuid: str, **fields: Any) -> Any:
    """Return a GPU with 40 GiB."""
    values = {"name": "NVIDIA A100-PCIE-40GB", "memory_bytes": 40 * GIB}
    return a_gpu(uuid, **(values | fields))


def box(name: str, *devices: Any, **fields: Any) -> MachineState:
    """Return alice's box with these devices."""
    return a_machine(name, devices=devices, **fields)


def held(name: str, *devices: str, **fields: Any) -> Any:
    """Return what somebody holds of *devices*."""
    return an_allocation(f"held-{name}", devices=devices, **fields)


def inspected(
    asked: ResourceClass, *machines: MachineState, **fields: Any
) -> Inspection:
    """Return what alice is told who asks for class *asked*."""
    catalog = a_catalog(classes=(asked, *fields.pop("others", ())), **fields)
    return inspected_in(a_snapshot(catalog=catalog, machines=machines), asked.name)


def inspected_in(snapshot: Snapshot, class_name: str, **fields: Any) -> Inspection:
    """Return what alice is told in *snapshot*."""
    planner = planner_of(snapshot)
    planner.decide(snapshot.now)
    return inspect_request(planner, a_waiting("?", class_name=class_name, **fields))


def test_less_device_memory_is_told_with_how_many_machines_and_how_many_free() -> None:
    """One large device is taken; four smaller ones exist, of which one is free."""
    small = [box(f"small-{number}", a_small_gpu(f"S{number}")) for number in range(4)]
    busy = [
        box(one.name, *one.facts.devices, held=(held(one.name, f"S{number}"),))
        for number, one in enumerate(small[:3])
    ]
    large = box("large", a_gpu("L"), held=(held("large", "L"),))
    found = inspected(
        a_gpu_class("big", device_memory_bytes=60 * GIB), large, *busy, small[3]
    )
    (change,) = found.changes
    assert change == Change(
        kind=ChangeKind.DEVICE_MEMORY,
        requested="60G",
        instead="40G",
        machines=5,
        free_now=1,
    )
    assert change_sentence(change) == (
        "With 40 GiB of device memory instead of 60 GiB: 5 machines, 1 free now."
    )


def test_where_all_say_never_any_machine_that_would_serve_is_a_help() -> None:
    """The largest there is, busy or not: asking for more would be refused for ever."""
    large = box("large", a_gpu("L"), held=(held("large", "L"),))
    found = inspected(a_gpu_class("huge", device_memory_bytes=100 * GIB), large)
    assert not found.verdict.choosable
    (change,) = found.changes
    assert (change.instead, change.machines, change.free_now) == ("80G", 1, 0)
    assert change_sentence(change).endswith("1 machine, none free now.")


@pytest.mark.parametrize(
    ("asked", "machine", "kind", "instead"),
    [
        (a_class("c", cpu_milli=64_000), {"cores_milli": 8000}, ChangeKind.CPU, "8"),
        (
            a_class("c", memory_bytes=64 * GIB),
            {"memory_bytes": 32 * GIB - 5},
            ChangeKind.MEMORY,
            "31.75G",
        ),
        (
            a_class("c", disk_bytes=64 * GIB),
            {"disk_free_bytes": 20 * GIB},
            ChangeKind.DISK,
            "20G",
        ),
        (
            a_gpu_class("c", compute_capability="9.0"),
            {"devices": (a_gpu(),)},
            ChangeKind.COMPUTE_CAPABILITY,
            "8.0",
        ),
        (
            a_gpu_class("c", device_models=("H100",)),
            {"devices": (a_gpu(),)},
            ChangeKind.DEVICE_MODEL,
            "NVIDIA A100-SXM4-80GB",
        ),
        (
            a_gpu_class("c", devices=3),
            {"devices": (a_gpu("a"), a_gpu("b"))},
            ChangeKind.DEVICES,
            "2",
        ),
    ],
)
def test_each_requirement_has_its_own_change(
    asked: ResourceClass, machine: dict[str, Any], kind: ChangeKind, instead: str
) -> None:
    """The most that some machine has, in the catalog's units and readable."""
    found = inspected(asked, a_machine("box", **machine))
    (change,) = found.changes
    assert (change.kind, change.instead) == (kind, instead)
    assert (change.machines, change.free_now) == (1, 1)
    assert instead.removesuffix("G") in change_sentence(change)


def test_a_change_fits_when_it_is_made() -> None:
    """Asking for what the change says gives what the change says."""
    holds = held("large", cpu_milli=5300, memory_bytes=GIB)
    machine = a_machine("large", held=(holds,))
    asked = a_class("c", cpu_milli=6000)
    (change,) = inspected(asked, machine).changes
    assert (change.kind, change.instead) == (ChangeKind.CPU, "2.7")
    smaller = asked.model_copy(update={"cpu_milli": 2700})
    assert inspected(smaller, machine).verdict.startable
    larger = asked.model_copy(update={"cpu_milli": 2800})
    assert not inspected(larger, machine).verdict.startable


def test_two_shortages_on_every_machine_have_no_single_change() -> None:
    """A change that would not help is not told."""
    asked = a_class("c", cpu_milli=64_000, memory_bytes=640 * GIB)
    assert inspected(asked, a_machine("box")).changes == ()


def test_another_class_of_the_profile_is_told_of_the_same_kind_first() -> None:
    """A GPU class leads to another GPU class before it leads to the CPU."""
    large = box("large", a_gpu("L"), held=(held("large", "L"),))
    small = box("small", a_small_gpu("S"))
    found = inspected(
        a_gpu_class("big", device_memory_bytes=60 * GIB),
        large,
        small,
        others=(a_class("plain"), a_gpu_class("any")),
    )
    assert [change.kind for change in found.changes] == [
        ChangeKind.DEVICE_MEMORY,
        ChangeKind.CLASS,
    ]
    assert found.changes[-1].instead == "any"
    assert change_sentence(found.changes[-1]) == (
        "With the class any instead of big: 2 machines, 1 free now."
    )


def test_a_quota_is_helped_by_a_class_within_it_and_by_no_machine() -> None:
    """More machines would not help; a class without devices would."""
    machine = box(
        "box", a_gpu("A"), a_gpu("B"), held=(held("box", "A", owner="alice"),)
    )
    found = inspected(
        a_gpu_class("gpu"),
        machine,
        others=(a_class("plain"),),
        quotas=(Quota(user="alice", devices=1),),
    )
    assert found.verdict.explanation is not None
    assert found.verdict.explanation.reason.value == "user_limit"
    (change,) = found.changes
    assert (change.kind, change.instead) == (ChangeKind.CLASS, "plain")


def test_files_bind_the_change_to_their_machine() -> None:
    """What another machine has does not help who must go back."""
    home = a_machine("home", cores_milli=4000)
    other = a_machine("other", cores_milli=6000)
    snapshot = a_snapshot(
        catalog=a_catalog(classes=(a_class("c", cpu_milli=8000),)),
        machines=(home, other),
    )
    pin = Pin(machine="home", driver=DriverName.NATIVE)
    (change,) = inspected_in(snapshot, "c", pin=pin).changes
    assert (change.instead, change.machines) == ("4", 1)


def test_room_that_is_promised_to_somebody_else_is_not_free() -> None:
    """A waiter's reservation counts against what a change would bring."""
    machine = a_machine(
        "box",
        cores_milli=4000,
        sharing=OPEN,
        held=(held("box", cpu_milli=2000, ends_by=1_800_000_600.0),),
    )
    classes = (a_class("all", cpu_milli=4000), a_class("c", cpu_milli=3000))
    waiting = a_waiting("first", class_name="all")
    snapshot = a_snapshot(
        catalog=a_catalog(classes=classes), machines=(machine,), waiting=(waiting,)
    )
    assert inspected_in(snapshot, "c").changes == ()


def test_less_of_a_machine_fits_beside_what_is_promised_to_somebody_else() -> None:
    """Somebody is promised three cores of the four that are there: one is left."""
    machine = a_machine(
        "box",
        cores_milli=4000,
        sharing=OPEN,
        held=(held("box", cpu_milli=2000, ends_by=1_800_000_600.0),),
    )
    classes = (a_class("most", cpu_milli=3000), a_class("c", cpu_milli=2000))
    waiting = a_waiting("first", class_name="most")
    snapshot = a_snapshot(
        catalog=a_catalog(classes=classes), machines=(machine,), waiting=(waiting,)
    )
    found = inspected_in(snapshot, "c")
    assert list(found.counts) == ["behind"]
    (change,) = found.changes
    assert (change.kind, change.instead, change.free_now) == (ChangeKind.CPU, "1", 1)


@pytest.mark.parametrize(
    ("wish", "other"),
    [
        ({"device_memory_bytes": 60 * GIB}, {"memory_bytes": 40 * GIB}),
        ({"compute_capability": "8.0"}, {"compute_capability": "7.0"}),
        ({"device_models": ("A100",)}, {"name": "NVIDIA L4"}),
        ({}, {"usable": False, "healthy": False}),
        ({}, {"usable": False, "healthy": True}),
        ({"device_memory_bytes": 60 * GIB}, {"memory_bytes": None}),
    ],
)
def test_one_device_less_helps_where_only_some_devices_are_what_is_wished_for(
    wish: dict[str, Any], other: dict[str, Any]
) -> None:
    """Whatever the machine names: one of its two devices would serve."""
    machine = box("mixed", a_gpu("A"), a_gpu("B", **other))
    found = inspected(a_gpu_class("pair", devices=2, **wish), machine)
    told = {change.kind: change.instead for change in found.changes}
    assert told[ChangeKind.DEVICES] == "1"


def test_another_wish_helps_though_the_machine_names_a_third() -> None:
    """The new device is small, the large one is old: each of two changes would do."""
    new = a_gpu("A", compute_capability="9.0", memory_bytes=24 * GIB)
    old = a_gpu("B", compute_capability="7.0", memory_bytes=80 * GIB)
    asked = a_gpu_class(
        "c", compute_capability="8.0", device_memory_bytes=40 * GIB, devices=1
    )
    found = inspected(asked, box("mixed", new, old))
    assert list(found.counts) == ["vram_too_small"]
    told = {change.kind: change.instead for change in found.changes}
    assert told == {
        ChangeKind.DEVICE_MEMORY: "24G",
        ChangeKind.COMPUTE_CAPABILITY: "7.0",
    }


def test_every_machine_is_told_and_those_that_would_serve_are_told_apart() -> None:
    """Those that take it now come first and have no reason; others have their own."""
    found = inspected(
        a_gpu_class("gpu"),
        box("cpu-box"),
        box("gpu-box", a_gpu("A")),
        box("x", a_gpu()),
    )
    told = {one.machine: one.explanation for one in found.machines}
    assert list(told) == ["gpu-box", "x", "cpu-box"]
    assert told["cpu-box"] is not None
    assert told["cpu-box"].reason.value == "accelerator_mismatch"
    assert told["gpu-box"] is None
    assert found.verdict.startable
    assert found.changes == ()


def test_only_amounts_that_some_machine_has_are_tried_the_largest_first() -> None:
    """A step is made when it is looked at, one or several."""
    fleet = planner_of(
        a_snapshot(
            machines=[box(f"m{cores}", cores_milli=cores) for cores in (1, 4000)]
        )
    ).fleet
    chosen = a_class("c", cpu_milli=9000)
    steps = STEPS[ChangeKind.CPU](fleet, chosen, ())
    assert [step.instead for step in steps[:5]] == ["4"]
    assert (len(steps), steps[0].chosen.cpu_milli) == (1, 4000)


def test_looking_at_a_waiter_takes_no_news_from_its_timeline() -> None:
    """What must be told once, such as a broken promise, is left for the cycle."""
    snapshot = a_snapshot(
        machines=(a_machine("box", held=(held("box", cpu_milli=8000),)),),
        waiting=(a_waiting("w"),),
    )
    planner = planner_of(snapshot)
    planner.decide(snapshot.now)
    waiter = planner.waiters["w"]
    waiter.broken = waiter.interest.parts[0].outlook.nearest_miss
    before = waiter.broken
    inspect_waiting(planner, "w")
    assert waiter.broken is before


@pytest.mark.parametrize("most", [1, 1000])
def test_each_changed_request_is_judged_by_what_was_changed_of_it(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answer is never taken for another's, however many are remembered."""
    monkeypatch.setattr(outlooks, "MOST_IMAGINED", most)
    asked = a_gpu_class(
        "asked",
        cpu_milli=64_000,
        memory_bytes=500 * GIB,
        disk_bytes=900 * GIB,
        devices=3,
        device_memory_bytes=96 * GIB,
        compute_capability="9.5",
        device_models=("H100",),
    )
    machine = box("box", a_gpu("a"), a_small_gpu("b", compute_capability="7.5"))
    planner = a_planner(machine, catalog=a_catalog(classes=(asked,)))
    fleet, (group,) = planner.fleet, planner.fleet.groups.values()
    request = planner.request(a_waiting(), "asked")
    assert isinstance(request, Request)
    steps = [step for kind in STEPS for step in STEPS[kind](fleet, asked, ())]
    assert len(steps) >= len(STEPS)
    for step in (*steps, *steps):
        changed = replace(request, chosen=step.chosen)
        assert fleet.imagined_outlook(group, changed, Relation.OWNER, None) == look(
            group.signature, changed, Relation.OWNER, DRIVER_ORDER, TrustPolicy()
        )


def mine_and_theirs(sharing: Sharing) -> list[MachineState]:
    """Return equal machines of alice, one of them away, and of bob."""
    return [
        a_machine(
            name,
            owner=owner,
            sharing=sharing,
            online=online,
            drivers={DriverName.SIMULATION: True},
        )
        for name, owner, online in (
            ("mine", "alice", True),
            ("mine-too", "alice", True),
            ("mine-away", "alice", False),
            ("theirs", "bob", True),
            ("theirs-too", "bob", True),
        )
    ]


@pytest.mark.parametrize(
    ("sharing", "machines", "free"),
    [(OPEN, 5, 4), (Sharing(), 3, 2)],
    ids=["shared with everybody", "each for its owner"],
)
def test_machines_of_ones_own_count_as_their_equals_do_if_those_serve_one(
    sharing: Sharing, machines: int, free: int
) -> None:
    """Whose they are tells equal machines apart only where the owner's word does."""
    found = inspected(a_class("wide", cpu_milli=64_000), *mine_and_theirs(sharing))
    (change,) = found.changes
    assert (change.kind, change.instead) == (ChangeKind.CPU, "8")
    # Of those that say never alone it is told how many would serve.
    assert (change.machines, change.free_now) == (machines, free)


def test_what_owners_forbid_is_said_of_their_machines_and_not_of_ones_own() -> None:
    """Though all of them are of one sort, and would do."""
    found = inspected(a_class("small"), *mine_and_theirs(Sharing()))
    assert {one.reason: one.machines for one in found.alike} == {
        None: ("mine", "mine-too"),
        Reason.OFFLINE: ("mine-away",),
        Reason.OWNER_FORBIDS: ("theirs", "theirs-too"),
    }


def test_less_is_free_of_a_machine_of_ones_own_where_others_are_forbidden() -> None:
    """Theirs are idle, and count for nothing."""
    mine, *others = mine_and_theirs(Sharing())
    busy = replace(mine, held=(held("mine", cpu_milli=4000),))
    found = inspected(a_class("whole", cpu_milli=8000), busy, *others[2:])
    (change,) = found.changes
    assert (change.kind, change.instead) == (ChangeKind.CPU, "4")
    assert (change.machines, change.free_now) == (1, 1)
