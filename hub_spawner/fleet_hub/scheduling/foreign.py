"""Which devices of a machine do programs outside the fleet use, and what follows?

Devices are given whole, so one of which somebody else uses a part is not given at all.
Nobody knows when such a use ends: it holds for ever, as far as promises go, and clears
with the machine's next word.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fleet_contracts.language import mark
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.scheduling.signatures import Signature, type_of
from fleet_hub.scheduling.snapshot import Allocation, MachineState
from fleet_hub.scheduling.vectors import Need, Vector


SOME_MORE = mark("programs outside the fleet use others of its devices")


class Outside(NamedTuple):
    """One device of which others than the fleet use a part."""

    position: int
    """Of its type, among the machine's amounts."""
    used_bytes: int
    memory_bytes: int
    """0: nobody knows."""


def used_outside(
    machine: MachineState, signature: Signature, held: Iterable[Allocation]
) -> tuple[Outside, ...]:
    """Return the usable devices that are not *held* and that others use.

    What one of ours holds is its own business, and cannot be lost twice.
    """
    used = dict(machine.foreign)
    if not used:
        return ()
    ours = {uuid for allocation in held for uuid in allocation.resources.devices}
    return tuple(
        sorted(
            Outside(
                position=signature.position(type_of(device)),
                used_bytes=used[device.uuid],
                memory_bytes=device.memory_bytes or 0,
            )
            for device in machine.facts.devices
            if device.usable and device.uuid in used and device.uuid not in ours
        )
    )


def amounts_of(outside: Iterable[Outside], length: int) -> Vector:
    """Return what *outside* takes of a machine with amounts of this *length*."""
    taken = [0] * length
    for device in outside:
        taken[device.position] += 1
    return tuple(taken)


def suitable(outside: Iterable[Outside], need: Need) -> list[Outside]:
    """Return those that *need* could take, the least used first."""
    found = [device for device in outside if device.position in need.types]
    return sorted(found, key=lambda device: device[1:])


def bars(outside: Iterable[Outside], need: Need, capacity: Vector) -> bool:
    """Return whether *need* cannot start before one of *outside* is free again.

    Where holders alone could give enough back, they are what is waited for.
    """
    used = len(suitable(outside, need))
    return bool(used) and (
        sum(capacity[position] for position in need.types) - used < need.devices
    )


def foreign_process(outside: Iterable[Outside], need: Need) -> Explanation:
    """Return what bars *need*, with the numbers of the least used of *outside*."""
    devices = suitable(outside, need)
    first = devices[0]
    memory = first.memory_bytes
    return Explanation(
        reason=Reason.FOREIGN_PROCESS,
        # Devices are given whole: all of its memory is asked for.
        requested=memory or None,
        capacity=memory or None,
        free=max(0, memory - first.used_bytes) if memory else None,
        unit="bytes",
        detail=SOME_MORE if len(devices) > 1 else None,
    )
