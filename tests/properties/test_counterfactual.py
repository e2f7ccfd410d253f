"""A change that is told brings what it says: it is made, and everything asked anew."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings
from scheduling_builders import (
    GIB,
    NOON,
    OPEN,
    a_catalog,
    a_class,
    a_gpu,
    a_gpu_class,
    a_machine,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.amounts import parse_bytes, parse_cores
from fleet_contracts.catalog import ResourceClass
from fleet_contracts.changes import Change, ChangeKind
from fleet_contracts.reasons import FACTS
from fleet_contracts.workloads import DriverName
from fleet_hub.scheduling.inspection import Inspection, inspect_request
from fleet_hub.scheduling.nearness import HOPELESS
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.snapshot import MachineState, Snapshot, Waiting


OTHER = a_class("other", cpu_milli=5000, limit_seconds=1000)
LARGE = a_class("large", cpu_milli=16_000, memory_bytes=16 * GIB, limit_seconds=5000)
SIZES = st.sampled_from([24, 40, 80])


@st.composite
def machines(draw: st.DrawFn, name: str) -> MachineState:
    """Return a machine with devices of any sizes, some of them held."""
    devices = tuple(
        a_gpu(
            f"{name}-{number}",
            memory_bytes=draw(SIZES) * GIB,
            compute_capability=draw(st.sampled_from(["7.5", "8.0", "9.0"])),
            name=draw(st.sampled_from(["NVIDIA L4", "NVIDIA H100"])),
        )
        for number in range(draw(st.integers(0, 3)))
    )
    held = tuple(
        an_allocation(
            f"h-{device.uuid}",
            devices=(device.uuid,),
            cpu_milli=draw(st.sampled_from([500, 3000])),
            ends_by=draw(st.none() | st.just(NOON + 500)),
        )
        for device in devices
        if draw(st.booleans())
    )
    return a_machine(
        name,
        owner=draw(st.sampled_from(["alice", "bob", "cy"])),
        sharing=OPEN,
        drivers={DriverName.NATIVE: True, DriverName.SIMULATION: draw(st.booleans())},
        devices=devices,
        held=held,
        cores_milli=draw(st.sampled_from([4000, 8000, 16_000])),
        memory_bytes=draw(st.sampled_from([16, 64])) * GIB,
        disk_free_bytes=draw(st.sampled_from([50, 500])) * GIB,
        online=draw(st.sampled_from([True, True, False])),
    )


ASKED = st.builds(
    a_class,
    st.just("asked"),
    cpu_milli=st.sampled_from([1000, 9000, 64_000]),
    memory_bytes=st.sampled_from([1, 32, 500]).map(lambda size: size * GIB),
    disk_bytes=st.sampled_from([0, 0, 100, 900]).map(lambda size: size * GIB),
) | st.builds(
    a_gpu_class,
    st.just("asked"),
    devices=st.integers(1, 4),
    device_memory_bytes=st.none() | SIZES.map(lambda size: (size + 16) * GIB),
    compute_capability=st.none() | st.sampled_from(["8.0", "9.5"]),
    device_models=st.sampled_from([(), ("A100",), ("H100",)]),
)


def inspected(snapshot: Snapshot) -> Inspection:
    """Return what alice is told who asks for the class ``asked``."""
    planner = planner_of(snapshot)
    planner.decide(snapshot.now)
    return inspect_request(planner, a_waiting("?", class_name="asked"))


def a_fleet(asked: ResourceClass, *parts: Any) -> Snapshot:
    """Return the fleet whose catalog has this class and one of other people's."""
    fleet, waiting = parts
    catalog = a_catalog(classes=(asked, OTHER, LARGE))
    return a_snapshot(catalog=catalog, machines=tuple(fleet), waiting=tuple(waiting))


def changed(asked: ResourceClass, change: Change) -> ResourceClass:
    """Return the class as *change* would have it."""
    text = change.instead
    fields: dict[ChangeKind, tuple[str, Any]] = {
        ChangeKind.DEVICE_MEMORY: ("device_memory_bytes", parse_bytes),
        ChangeKind.MEMORY: ("memory_bytes", parse_bytes),
        ChangeKind.DISK: ("disk_bytes", parse_bytes),
        ChangeKind.CPU: ("cpu_milli", parse_cores),
        ChangeKind.DEVICES: ("devices", int),
        ChangeKind.COMPUTE_CAPABILITY: ("compute_capability", str),
        ChangeKind.DEVICE_MODEL: ("device_models", lambda name: (name,)),
    }
    if change.kind is ChangeKind.CLASS:
        return OTHER.model_copy(update={"name": "asked"})
    name, read = fields[change.kind]
    return asked.model_copy(update={name: read(text)})


def others_wait(draw: st.DrawFn) -> list[Waiting]:
    """Return a line of somebody else's."""
    names = draw(st.lists(st.sampled_from(["other", "large"]), max_size=3))
    return [
        a_waiting(f"w{number}", class_name=name) for number, name in enumerate(names)
    ]


@st.composite
def fleets(draw: st.DrawFn) -> tuple[list[MachineState], list[Waiting]]:
    """Return a few machines and a line."""
    count = draw(st.integers(1, 4))
    return [draw(machines(f"m{number}")) for number in range(count)], others_wait(draw)


@settings(max_examples=150)
@given(ASKED, fleets())
def test_a_change_that_is_told_brings_what_it_says(
    asked: ResourceClass, parts: tuple[list[MachineState], list[Waiting]]
) -> None:
    """As many machines are free then, and as many could serve at all."""
    found = inspected(a_fleet(asked, *parts))
    for change in found.changes:
        after = inspected(a_fleet(changed(asked, change), *parts))
        free = [one for one in after.machines if one.explanation is None]
        assert len(free) == change.free_now, change
        assert change.machines >= change.free_now
        if change.free_now:
            assert after.verdict.startable
        assert after.verdict.choosable


FIELDS: dict[ChangeKind, tuple[str, int]] = {
    ChangeKind.DEVICE_MEMORY: ("device_memory_bytes", GIB // 4),
    ChangeKind.MEMORY: ("memory_bytes", GIB // 4),
    ChangeKind.DISK: ("disk_bytes", GIB // 4),
    ChangeKind.CPU: ("cpu_milli", 100),
    ChangeKind.DEVICES: ("devices", 1),
}
"""What can be less, and how fine it is told."""


@settings(max_examples=150)
@given(ASKED, fleets())
def test_the_smallest_change_of_each_amount_is_told_and_none_is_missed(
    asked: ResourceClass, parts: tuple[list[MachineState], list[Waiting]]
) -> None:
    """Every amount is tried here, whatever any machine has or names as its reason."""
    found = inspected(a_fleet(asked, *parts))
    if found.verdict.startable:
        assert found.changes == ()
        return
    told = {change.kind: changed(asked, change) for change in found.changes}
    is_hopeless = all(FACTS[reason].kind in HOPELESS for reason in found.counts)
    for kind, (field, step) in FIELDS.items():
        requested = getattr(asked, field) or 0

        def helps(steps: int, field: str = field, step: int = step) -> bool:
            instead = asked.model_copy(update={field: steps * step})
            after = inspected(a_fleet(instead, *parts)).verdict
            return after.choosable if is_hopeless else after.startable

        lower = range(-(-requested // step) - 1, 0, -1)
        first = bisect_left(lower, 1, key=lambda steps: int(helps(steps)))
        most = lower[first] * step if first < len(lower) else None
        assert most == (getattr(told[kind], field) if kind in told else None), kind
