"""Who uses a GPU beside the fleet, and is it there?  What one look at it says.

A program that computes is told from a desktop that draws.  What cannot be told is
unknown: neither nothing nor everything.
"""

from __future__ import annotations

from typing import Final

from fleet_contracts.capabilities import DeviceUsage, WorkerCapabilities


PROGRAM_MIB: Final = 256
"""What a program that computes takes at the least; an idle GPU has a few MiB in use."""
DESKTOP_MIB: Final = 2048
"""More than the pictures of a desktop take: windows, a browser, large screens."""
_BUSY_PERCENT: Final = 10
_NVIDIA: Final = "nvidia"
"""The probe that names devices which are held by UUID."""


def is_in_use(seen: DeviceUsage) -> bool:
    """Return whether it is worth asking who uses the device."""
    used = seen.memory_used_mib
    return used is None or used >= PROGRAM_MIB or _computes(seen)


def used_by_programs(seen: DeviceUsage) -> int | None:
    """Return the MiB that programs take of a device, whoever's; None: nobody knows.

    0: nobody computes there, though a desktop may be drawn with it.  Who computes in
    less than can be told counts with what the device has in use.
    """
    used = seen.memory_used_mib
    if used is None:
        return None
    if used >= DESKTOP_MIB:
        return used
    if not is_in_use(seen):
        return 0
    if seen.compute_processes is None:
        return None
    if not seen.compute_processes:
        return 0
    memory = seen.compute_memory_mib
    is_program = memory is None or memory >= PROGRAM_MIB or _computes(seen)
    return max(used, 1) if is_program else 0


def _computes(seen: DeviceUsage) -> bool:
    return (seen.utilisation_percent or 0) >= _BUSY_PERCENT


def is_there(picture: WorkerCapabilities, uuid: str) -> bool | None:
    """Return whether a GPU is there and works; None: nobody can tell.

    A list with gaps is no proof that what it does not name is gone.
    """
    for device in picture.accelerators:
        if device.uuid == uuid:
            return device.healthy
    return False if names_all(picture) and picture.settled else None


def names_all(picture: WorkerCapabilities) -> bool:
    """Return whether the list of GPUs that are held by UUID has no gaps."""
    return any(
        probe.probe == _NVIDIA and probe.devices_complete is True
        for probe in picture.probes
    )
