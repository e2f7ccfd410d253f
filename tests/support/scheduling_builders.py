"""Small fleets for the scheduling tests: sensible defaults, and only what matters."""

from __future__ import annotations

from typing import Any

from fleet_contracts.capabilities import DeviceKind
from fleet_contracts.catalog import Catalog, Profile, Relation, ResourceClass, Runtime
from fleet_contracts.placement_facts import PlaceableDevice, PlacementFacts
from fleet_contracts.workloads import Accelerator, DriverName, Principal, Resources
from fleet_hub.scheduling.decisions import Wait
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import (
    Allocation,
    MachineState,
    Reservation,
    Sharing,
    Snapshot,
    Waiting,
)
from fleet_hub.scheduling.telling import waits


GIB = 1024**3
NOON = 1_800_000_000.0
OPEN = Sharing(admin_allows=Relation.GUEST, owner_allows=Relation.GUEST)

ALICE = Principal(user_id=1, name="alice")
BOB = Principal(user_id=2, name="bob")


def a_class(name: str = "cpu", **fields: Any) -> ResourceClass:
    """Return a class of one core and 1 GiB, unless told otherwise."""
    values = {"name": name, "title": name, "cpu_milli": 1000, "memory_bytes": GIB}
    return ResourceClass(**(values | fields))


def a_gpu_class(name: str = "gpu", **fields: Any) -> ResourceClass:
    """Return a class of one CUDA device."""
    return a_class(name, **({"accelerator": Accelerator.CUDA, "devices": 1} | fields))


def a_metal_class(name: str = "metal", **fields: Any) -> ResourceClass:
    """Return a class of a Mac's GPU."""
    return a_class(name, **({"accelerator": Accelerator.MPS, "devices": 1} | fields))


def a_runtime(name: str = "jupyter", **fields: Any) -> Runtime:
    """Return a runtime that every driver can run on every accelerator."""
    values: dict[str, Any] = {
        "name": name,
        "accelerators": tuple(Accelerator),
        "ref": "secret-default",
        "driver_refs": {
            DriverName.NATIVE: "secret-environment",
            DriverName.DOCKER: "secret-image",
        },
    }
    return Runtime(**(values | fields))


def a_profile(name: str = "lab", **fields: Any) -> Profile:
    """Return a profile of the class ``cpu``."""
    values = {
        "name": name,
        "title": name,
        "classes": ("cpu",),
        "runtimes": ("jupyter",),
    }
    return Profile(**(values | fields))


def a_catalog(**fields: Any) -> Catalog:
    """Return a catalog whose profile ``lab`` offers ``cpu``, ``gpu`` and ``metal``."""
    classes = fields.pop("classes", (a_class(), a_gpu_class(), a_metal_class()))
    values = {
        "classes": classes,
        "runtimes": (a_runtime(),),
        "profiles": (a_profile(classes=tuple(item.name for item in classes)),),
    }
    return Catalog(**(values | fields))


def a_gpu(uuid: str = "GPU-0", **fields: Any) -> PlaceableDevice:
    """Return a healthy A100 with 80 GiB."""
    values: dict[str, Any] = {
        "accelerator": DeviceKind.CUDA,
        "uuid": uuid,
        "name": "NVIDIA A100-SXM4-80GB",
        "memory_bytes": 80 * GIB,
        "compute_capability": "8.0",
        "driver_version": "550.54.14",
        "healthy": True,
        "usable": True,
    }
    return PlaceableDevice(**(values | fields))


def a_metal_gpu(**fields: Any) -> PlaceableDevice:
    """Return a Mac's GPU: it works, and has no UUID."""
    values: dict[str, Any] = {
        "accelerator": DeviceKind.MPS,
        "name": "Apple M2 Pro",
        "healthy": True,
        "usable": True,
    }
    return PlaceableDevice(**(values | fields))


def some_facts(**fields: Any) -> PlacementFacts:
    """Return what a Linux box of 8 cores and 32 GiB says of itself."""
    values: dict[str, Any] = {
        "known": True,
        "settled": True,
        "os": "linux",
        "architecture": "x86_64",
        "cores_milli": 8000,
        "memory_bytes": 32 * GIB,
        "disk_free_bytes": 500 * GIB,
        "capabilities": {"sandbox.bubblewrap": True, "container.docker.gpu": True},
        "drivers": {DriverName.NATIVE: True},
    }
    return PlacementFacts(**(values | fields))


def a_machine(name: str = "box", **fields: Any) -> MachineState:
    """Return alice's idle Linux box; other fields than a machine's go to its facts."""
    facts = fields.pop("facts", None) or some_facts(
        **{key: fields.pop(key) for key in tuple(fields) if key in _FACTS}
    )
    return MachineState(**({"name": name, "owner": "alice", "facts": facts} | fields))


def a_gpu_box(name: str = "gpu-box", gpus: int = 1, **fields: Any) -> MachineState:
    """Return a Linux box with this many A100s, named by the machine."""
    devices = tuple(a_gpu(f"GPU-{name}-{number}") for number in range(gpus))
    return a_machine(name, **({"devices": devices} | fields))


def a_mac(name: str = "mac", **fields: Any) -> MachineState:
    """Return alice's Mac."""
    values = {"os": "darwin", "architecture": "arm64", "devices": (a_metal_gpu(),)}
    return a_machine(name, **(values | fields))


def a_docker_box(name: str = "box", **fields: Any) -> MachineState:
    """Return a box that runs containers for everybody."""
    values = {"drivers": {DriverName.DOCKER: True}, "sharing": OPEN}
    return a_machine(name, **(values | fields))


def an_allocation(workload: str = "held", **fields: Any) -> Allocation:
    """Return bob's notebook of one core and 1 GiB, held since 11:00."""
    resources = fields.pop("resources", None) or Resources(
        **(
            {"cpu_milli": 1000, "memory_bytes": GIB}
            | {key: fields.pop(key) for key in tuple(fields) if key in _RESOURCES}
        )
    )
    values: dict[str, Any] = {
        "workload": workload,
        "user_id": 2,
        "owner": "bob",
        "resources": resources,
        "driver": DriverName.NATIVE,
        "since": NOON - 3600,
    }
    return Allocation(**(values | fields))


def a_waiting(workload: str = "asked", **fields: Any) -> Waiting:
    """Return alice's request for the profile ``lab``, asked a minute ago."""
    values: dict[str, Any] = {
        "workload": workload,
        "principal": ALICE,
        "profile": "lab",
        "asked_at": NOON - 60,
    }
    return Waiting(**(values | fields))


def a_snapshot(**fields: Any) -> Snapshot:
    """Return a fleet of alice's box, with nobody in the line."""
    values: dict[str, Any] = {
        "now": NOON,
        "catalog": a_catalog(),
        "machines": (a_machine(),),
    }
    return Snapshot(**(values | fields))


BOTH_DRIVERS = {DriverName.NATIVE: True, DriverName.SIMULATION: True}
_GPU_CLASSES = (
    a_gpu_class("gpu", limit_seconds=3600),
    a_gpu_class("pair", devices=2, limit_seconds=3600),
    a_gpu_class("endless"),
)
HALVES = a_catalog(
    classes=(a_class("half", cpu_milli=4000, limit_seconds=7200),),
)
HOURLY_GPUS = a_catalog(
    classes=_GPU_CLASSES,
    profiles=(
        a_profile(classes=("gpu", "pair", "endless")),
        a_profile("urgent", classes=("gpu", "pair", "endless"), priority=5),
    ),
)


def a_gpu_hold(machine: str, ends_by: float | None = NOON + 3600) -> Allocation:
    """Return what bob holds of the first GPU of *machine*."""
    name = f"held-{machine}"
    return an_allocation(name, devices=(f"GPU-{machine}-0",), ends_by=ends_by)


def a_busy_box(
    name: str = "box", ends_by: float | None = NOON + 3600, gpus: int = 1
) -> MachineState:
    """Return everybody's GPU box of which bob holds the first GPU."""
    held = (a_gpu_hold(name, ends_by),)
    return a_gpu_box(name, gpus=gpus, sharing=OPEN, drivers=BOTH_DRIVERS, held=held)


def a_planner(*machines: MachineState, **fields: object) -> Planner:
    """Return the engine of a fleet of *machines*."""
    values = {"catalog": HOURLY_GPUS, "machines": machines}
    return planner_of(a_snapshot(**(values | fields)))


def a_gpu_request(workload: str, **fields: object) -> Waiting:
    """Return alice's request for one GPU for an hour."""
    return a_waiting(workload, **({"class_name": "gpu"} | fields))


def reserved(planner: Planner, workload: str) -> Reservation | None:
    """Return what is promised to *workload*, whatever is decided next."""
    return told(planner)[workload].reservation


def told(planner: Planner) -> dict[str, Wait]:
    """Return what everybody in the line is told."""
    return {item.workload: item for item in waits(planner)}


_FACTS = frozenset(PlacementFacts.model_fields)
_RESOURCES = frozenset(Resources.model_fields)
