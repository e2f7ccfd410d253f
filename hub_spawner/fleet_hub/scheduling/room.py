"""What of a machine is free, and what a workload would hold of it.

Amounts add up; whole GPUs and a Mac's GPU are held by one at a time.  Of several
GPUs that suit, the least capable are taken, so that the better ones stay free.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fleet_contracts.devices import reserves_metal
from fleet_contracts.placement_facts import PlaceableDevice
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Accelerator, DriverName, Resources
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.device_filters import devices_of_kind, suits
from fleet_hub.scheduling.snapshot import Allocation, MachineState
from fleet_hub.scheduling.versions import version_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What is left of one machine beside *held*; None: nobody knows."""

    machine: MachineState
    held: tuple[Allocation, ...]
    cpu_milli: int | None
    memory_bytes: int | None
    disk_bytes: int | None
    taken: frozenset[str]
    """UUIDs that somebody holds."""
    metal_taken: bool


def room_of(machine: MachineState, promised: Iterable[Allocation] = ()) -> Room:
    """Return what is left of *machine* beside what it holds and what is *promised*."""
    held = (*machine.held, *promised)
    facts = machine.facts
    return Room(
        machine=machine,
        held=held,
        cpu_milli=_left(facts.cores_milli, (item.resources.cpu_milli for item in held)),
        memory_bytes=_left(
            facts.memory_bytes, (item.resources.memory_bytes for item in held)
        ),
        disk_bytes=_left(
            facts.disk_free_bytes, (item.resources.disk_bytes for item in held)
        ),
        taken=frozenset(uuid for item in held for uuid in item.resources.devices),
        metal_taken=any(item.resources.metal for item in held),
    )


def needs_metal(request: Request, driver: DriverName, machine: MachineState) -> bool:
    """Return whether *request* would hold this machine's Metal GPU."""
    return reserves_metal(
        os=machine.facts.os, driver=driver, accelerator=request.chosen.accelerator
    )


def shortage(room: Room, request: Request, driver: DriverName) -> Explanation | None:
    """Return what is taken that *request* needs, the scarcest first; None: it fits.

    It is only asked of a machine that could hold the request if it were empty.
    """
    if needs_metal(request, driver, room.machine) and room.metal_taken:
        return Explanation(reason=Reason.METAL_BUSY, requested=1, free=0)
    return _device_shortage(room, request) or _amount_shortage(room, request)


def resources_for(room: Room, request: Request, driver: DriverName) -> Resources:
    """Return what *request* holds here; called when ``shortage`` is None."""
    chosen = request.chosen
    count = chosen.devices if _is_by_uuid(request) else 0
    free = free_devices(room, request)
    return Resources(
        cpu_milli=chosen.cpu_milli,
        memory_bytes=chosen.memory_bytes,
        disk_bytes=chosen.disk_bytes,
        devices=tuple(sorted(device.uuid or "" for device in free[:count])),
        metal=needs_metal(request, driver, room.machine),
    )


def free_devices(room: Room, request: Request) -> list[PlaceableDevice]:
    """Return the usable devices that suit and that nobody holds, least capable first."""
    return sorted(
        (
            device
            for device in healthy_devices(room.machine, request)
            if device.uuid not in room.taken
        ),
        key=_capability,
    )


def healthy_devices(machine: MachineState, request: Request) -> list[PlaceableDevice]:
    """Return the machine's usable devices that suit *request*, held or not."""
    chosen = request.chosen
    return [
        device
        for device in devices_of_kind(machine.facts, chosen.accelerator)
        if device.usable and suits(device, chosen)
    ]


def relevant_holders(room: Room, request: Request, reason: Reason) -> list[Allocation]:
    """Return whose end could clear *reason* on this machine."""
    if reason is Reason.METAL_BUSY:
        return [item for item in room.held if item.resources.metal]
    if reason is Reason.GPU_BUSY:
        suited = {device.uuid for device in healthy_devices(room.machine, request)}
        return [item for item in room.held if suited & set(item.resources.devices)]
    amount = {
        Reason.CPU_BUSY: lambda item: item.resources.cpu_milli,
        Reason.MEMORY_BUSY: lambda item: item.resources.memory_bytes,
        Reason.DISK_BUSY: lambda item: item.resources.disk_bytes,
    }[reason]
    return [item for item in room.held if amount(item)]


def _device_shortage(room: Room, request: Request) -> Explanation | None:
    if not _is_by_uuid(request):
        return None
    wanted, free = request.chosen.devices, len(free_devices(room, request))
    if free >= wanted:
        return None
    return Explanation(
        reason=Reason.GPU_BUSY,
        requested=wanted,
        capacity=len(healthy_devices(room.machine, request)),
        free=free,
        unit="devices",
    )


def _amount_shortage(room: Room, request: Request) -> Explanation | None:
    chosen, facts = request.chosen, room.machine.facts
    amounts = (
        (Reason.CPU_BUSY, chosen.cpu_milli, facts.cores_milli, room.cpu_milli),
        (
            Reason.MEMORY_BUSY,
            chosen.memory_bytes,
            facts.memory_bytes,
            room.memory_bytes,
        ),
        (Reason.DISK_BUSY, chosen.disk_bytes, facts.disk_free_bytes, room.disk_bytes),
    )
    for reason, wanted, capacity, free in amounts:
        if wanted and (free is None or wanted > free):
            return Explanation(
                reason=reason,
                requested=wanted,
                capacity=capacity,
                free=max(0, free or 0),
                unit="milli_cores" if reason is Reason.CPU_BUSY else "bytes",
            )
    return None


def _is_by_uuid(request: Request) -> bool:
    return request.chosen.accelerator in {Accelerator.CUDA, Accelerator.ROCM}


def _left(capacity: int | None, held: Iterable[int]) -> int | None:
    return None if capacity is None else capacity - sum(held)


def _capability(device: PlaceableDevice) -> tuple[int, tuple[int, ...], str]:
    return (
        device.memory_bytes or 0,
        version_key(device.compute_capability or "") or (),
        device.uuid or "",
    )
