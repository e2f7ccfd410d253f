"""What machines of different kinds say of themselves, for a controller in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fleet_builders import NOON

from fleet_contracts.capabilities import (
    AcceleratorDevice,
    AgentDriver,
    DeviceKind,
    Fact,
    HostFacts,
    Label,
    Observed,
    OwnerTerm,
    Tool,
    WorkerCapabilities,
)
from fleet_contracts.workloads import DriverName


GIB = 1 << 30
_SEEN = Observed(source="test", observed_at=NOON)


def some_gpus(
    machine: str, count: int, name: str = "NVIDIA A100-SXM4-80GB", **changes: Any
) -> list[AcceleratorDevice]:
    """Return *count* GPUs of 80 GiB, with UUIDs of their own."""
    values: dict[str, Any] = {
        "accelerator": DeviceKind.CUDA,
        "vendor": "NVIDIA",
        "name": name,
        "memory_mib": 80 * 1024,
        "compute_capability": "8.0",
        "driver_version": "550.54.14",
        "healthy": True,
        "execution_supported": True,
        "observed": _SEEN,
    }
    kind = name.lower().replace(" ", "-")
    return [
        AcceleratorDevice(uuid=f"GPU-{machine}-{kind}-{number}", **(values | changes))
        for number in range(count)
    ]


def a_picture(
    *,
    cores: int = 8,
    memory: int = 32 * GIB,
    disk: int = 500 * GIB,
    os: str = "linux",
    gpus: Iterable[AcceleratorDevice] = (),
    driver: DriverName = DriverName.NATIVE,
    labels: Mapping[str, str] | None = None,
    terms: Iterable[OwnerTerm] = (),
) -> dict[str, Any]:
    """Return what a box of 8 cores and 32 GiB says of itself, once its probes are done."""
    return WorkerCapabilities(
        host=HostFacts(
            os=Fact(value=os, observed=_SEEN),
            architecture=Fact(value="x86_64", observed=_SEEN),
            apple_silicon=Fact(value=False, observed=_SEEN),
            cores_allowed_milli=Fact(value=cores * 1000, observed=_SEEN),
            memory_allowed_bytes=Fact(value=memory, observed=_SEEN),
            disk_free_bytes=Fact(value=disk, observed=_SEEN),
        ),
        accelerators=tuple(gpus),
        drivers=(AgentDriver(name=driver, usable=True, observed=_SEEN),),
        sandboxes=(Tool(name="bubblewrap", usable=True, observed=_SEEN),),
        labels=tuple(
            Label(name=name, value=value, observed=_SEEN)
            for name, value in (labels or {}).items()
        ),
        terms=tuple(terms),
        settled=True,
    ).model_dump(mode="json")
