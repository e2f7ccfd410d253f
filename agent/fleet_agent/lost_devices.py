"""A GPU that was there and is not named any more has not gone for good.

A card that falls off its bus, an eGPU that is unplugged and a driver that is being
replaced look to a tool like a machine that never had one.  As long as the agent runs,
what it has once seen stays in the picture, as a device that does not work: whoever
needs it waits, instead of being told that there is no such thing.
"""

from __future__ import annotations

from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    WorkerCapabilities,
)
from fleet_contracts.device_use import names_all


def with_lost(
    seen: WorkerCapabilities, earlier: WorkerCapabilities
) -> WorkerCapabilities:
    """Return *seen* with the GPUs that were in *earlier*, as devices that do not work.

    Where the list has gaps, whether they work is unknown: a tool may have failed, and
    whoever computes on them goes on.  One without a UUID that does not work stands for the one that lost its name.
    """
    named = {device.uuid for device in seen.accelerators if device.uuid is not None}
    lost = [
        device
        for device in earlier.accelerators
        if device.accelerator is DeviceKind.CUDA
        and device.uuid is not None
        and device.uuid not in named
    ]
    if not lost:
        return seen
    healthy = False if names_all(seen) else None
    buses = {device.pci_bus_id for device in lost} - {None}
    kept = [
        device
        for device in seen.accelerators
        if device.uuid is not None or device.pci_bus_id not in buses
    ]
    return seen.model_copy(
        update={"accelerators": (*kept, *(_away(it, healthy=healthy) for it in lost))}
    )


def _away(device: AcceleratorDevice, *, healthy: bool | None) -> AcceleratorDevice:
    return device.model_copy(
        update={"healthy": healthy, "execution_supported": healthy}
    )
