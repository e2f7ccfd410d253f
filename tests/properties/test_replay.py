"""An exported state answers every question as the running fleet did, byte for byte."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings
from scheduling_builders import (
    ALICE,
    BOB,
    GIB,
    NOON,
    OPEN,
    a_catalog,
    a_class,
    a_gpu,
    a_gpu_class,
    a_mac,
    a_machine,
    a_metal_class,
    a_profile,
    a_runtime,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Audience, Quota, Requirements
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.explaining.answers import answer, line
from fleet_hub.explaining.document import Question
from fleet_hub.explaining.state import FleetState, Subject, dump, load, redacted
from fleet_hub.explaining.view import view_of
from fleet_hub.scheduling.snapshot import MachineState, Snapshot


REFS = tuple(f"registry.example/{name}-MARKER" for name in "zabymc")
CLASSES = (
    a_class("cpu", limit_seconds=1000),
    a_class("wide", cpu_milli=6000, disk_bytes=300 * GIB),
    a_gpu_class("gpu", limit_seconds=3000),
    a_gpu_class("large-gpu", device_memory_bytes=60 * GIB),
    a_metal_class("metal", limit_seconds=2000),
)
PEOPLE = (ALICE, BOB.model_copy(update={"groups": ("bio",)}))


def profile(name: str, **fields: Any) -> Any:
    """Return a profile that offers every class."""
    names = tuple(item.name for item in CLASSES)
    return a_profile(name, classes=names, runtimes=("legacy", "mapped"), **fields)


@st.composite
def catalogs(draw: st.DrawFn) -> Any:
    """Return a catalog with maps, without, and with the older key."""
    refs = st.sampled_from(REFS)
    maps = st.dictionaries(
        st.sampled_from([DriverName.NATIVE, DriverName.DOCKER]), refs, max_size=2
    )
    return a_catalog(
        classes=CLASSES,
        runtimes=(
            a_runtime(
                "legacy",
                accelerators=(Accelerator.CPU, Accelerator.MPS),
                ref=draw(refs),
                container_ref=draw(st.none() | refs),
                driver_refs=draw(maps),
            ),
            a_runtime(
                "mapped",
                ref=draw(st.none() | refs),
                driver_refs=draw(maps),
                requires=draw(st.sampled_from([(), ("torch.cuda",)])),
            ),
        ),
        profiles=(
            profile("lab"),
            profile(
                "pinned",
                requirements=Requirements(
                    interpreter="3.11", frameworks={"torch": "2"}
                ),
            ),
            profile("private", audience=Audience(everyone=False, groups=("bio",))),
        ),
        quotas=draw(st.sampled_from([(), (Quota(user="*", workloads=2),)])),
    )


@st.composite
def machines(draw: st.DrawFn, name: str) -> MachineState:
    """Return a machine whose facts speak of environments by their refs."""
    facts = {
        "environments": {
            ref: {"torch.cuda": draw(st.sampled_from([True, False, None]))}
            for ref in draw(st.sets(st.sampled_from(REFS), max_size=3))
        },
        "frameworks": {
            ref: {"torch": draw(st.sampled_from(["1.13", "2.4"])), "python": "3.11.2"}
            for ref in draw(st.sets(st.sampled_from(REFS), max_size=3))
        },
    }
    fields = {
        "owner": draw(st.sampled_from(["alice", "bob"])),
        "sharing": OPEN,
        "drivers": {
            DriverName.NATIVE: True,
            DriverName.DOCKER: draw(st.booleans()),
            DriverName.SIMULATION: draw(st.booleans()),
        },
        "online": draw(st.sampled_from([True, True, True, False])),
        "draining_by": draw(st.sampled_from([None, None, "root"])),
        **facts,
    }
    if draw(st.booleans()):
        return a_mac(name, **fields)
    devices = tuple(
        a_gpu(f"{name}-{number}", memory_bytes=draw(st.sampled_from([40, 80])) * GIB)
        for number in range(draw(st.integers(0, 2)))
    )
    held = [
        an_allocation(
            f"h-{name}-{number}",
            cpu_milli=draw(st.sampled_from([1000, 5000])),
            devices=(device.uuid,),
            ends_by=draw(st.none() | st.floats(NOON + 1, NOON + 9000)),
        )
        for number, device in enumerate(devices)
        if draw(st.booleans())
    ]
    return a_machine(name, devices=devices, held=tuple(held), **fields)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Return a small fleet with a line."""
    waiting = tuple(
        a_waiting(
            f"w{number}",
            principal=draw(st.sampled_from(PEOPLE)),
            class_name=draw(st.sampled_from([item.name for item in CLASSES])),
            profile=draw(st.sampled_from(["lab", "pinned"])),
            asked_at=NOON - 10 * number,
        )
        for number in range(draw(st.integers(0, 4)))
    )
    return a_snapshot(
        catalog=draw(catalogs()),
        machines=tuple(
            draw(machines(f"m{number}")) for number in range(draw(st.integers(0, 4)))
        ),
        waiting=waiting,
    )


def a_state(snapshot: Snapshot) -> FleetState:
    """Return the fleet's state with the subjects of its line."""
    now = datetime.fromtimestamp(snapshot.now, UTC)
    return FleetState(
        as_of=now,
        snapshot=snapshot,
        workloads=tuple(
            Subject(
                workload=one.workload,
                generation=1,
                principal=one.principal,
                server="",
                profile=one.profile,
                class_name=one.class_name,
                state=State.QUEUED,
                asked_at=datetime.fromtimestamp(one.asked_at, UTC),
                headline="Waiting in line.",
            )
            for one in snapshot.waiting
        ),
    )


def questions(snapshot: Snapshot) -> list[Question]:
    """Return every question that can be asked of this fleet."""
    asked: list[dict[str, Any]] = [
        {"workload": one.workload} for one in snapshot.waiting
    ]
    asked += [
        {"profile": name, "class": chosen.name, "user": who.name, "groups": who.groups}
        for name in ("lab", "pinned", "private", "no-such")
        for chosen in CLASSES
        for who in PEOPLE
    ]
    return [Question.model_validate(one) for one in asked]


@settings(max_examples=40)
@given(snapshots())
def test_a_replayed_state_answers_byte_for_byte_and_holds_no_ref(
    snapshot: Snapshot,
) -> None:
    """Selection, placement, reasons, numbers, promises and changes are the same."""
    state = a_state(snapshot)
    text = json.dumps(dump(state))
    assert "MARKER" not in text
    replayed, running = view_of(load(text)), view_of(state)
    for question in questions(snapshot):
        live = answer(running, question).model_dump_json(by_alias=True)
        assert answer(replayed, question).model_dump_json(by_alias=True) == live
        assert "MARKER" not in live
        assert "redacted" not in live
    assert line(replayed) == line(running)


@given(snapshots())
def test_redacting_twice_changes_nothing(snapshot: Snapshot) -> None:
    """A replayed state can be exported again, and drivers' keys are still there."""
    once = redacted(a_state(snapshot))
    assert redacted(once) == once
    for before, after in zip(
        snapshot.catalog.runtimes, once.snapshot.catalog.runtimes, strict=True
    ):
        assert list(before.driver_refs) == list(after.driver_refs)
        assert (before.ref is None) == (after.ref is None)
        assert (before.container_ref is None) == (after.container_ref is None)
