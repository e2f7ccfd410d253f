"""What one machine answers to one request, with numbers and holders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fleet_contracts.amounts import describe_bytes
from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_contracts.workloads import Principal, Resources
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.entries import Entry
from fleet_hub.scheduling.foreign import SOME_MORE, bars, foreign_process, suitable
from fleet_hub.scheduling.holders import by_its_owner, told
from fleet_hub.scheduling.nearness import TOLD_AS_REJECTED, nearness
from fleet_hub.scheduling.outlooks import Outlook
from fleet_hub.scheduling.signatures import type_of
from fleet_hub.scheduling.snapshot import Pin
from fleet_hub.scheduling.vectors import (
    CPU,
    DISK,
    FIRST_TYPE,
    MEMORY,
    METAL,
    Need,
    Vector,
)


_BUSY: Final = (
    (CPU, Reason.CPU_BUSY),
    (MEMORY, Reason.MEMORY_BUSY),
    (DISK, Reason.DISK_BUSY),
)
_POSITIONS: Final = {
    Reason.GPU_BUSY: (FIRST_TYPE, "devices"),
    Reason.METAL_BUSY: (METAL, "devices"),
    Reason.CPU_BUSY: (CPU, "milli_cores"),
    Reason.MEMORY_BUSY: (MEMORY, "bytes"),
    Reason.DISK_BUSY: (DISK, "bytes"),
}
"""What is short, and its unit, where a machine is merely busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks, and what is particular to this one request."""

    principal: Principal
    pin: Pin | None = None
    rejected_by: Mapping[str, Reason] = field(default_factory=dict)
    names_visible: bool = True


def machine_answer(entry: Entry, outlook: Outlook, asker: Asker) -> Explanation | None:
    """Return why the machine takes nothing of the asker now; None: it has room.

    Promises to others are not looked at: "it would fit" is for the planner to refuse.
    """
    reason, need = machine_reason(entry, outlook, asker.rejected_by)
    if reason is None:
        return None
    found = _numbers(reason, need, entry, outlook, asker.rejected_by)
    if reason is Reason.OWNER_FORBIDS:
        return by_its_owner(found, entry.machine, names_visible=asker.names_visible)
    more: dict[str, object] = {"machine": entry.machine.name}
    if need is not None and reason in _POSITIONS:
        more["holders"] = _holders(entry, need, reason, asker)
        more["detail"] = _unused(entry, found) or found.detail
    return found.model_copy(update=more)


def machine_numbers(
    entry: Entry, outlook: Outlook, rejected_by: Mapping[str, Reason]
) -> Explanation | None:
    """Return the same without the machine's name and holders: code and numbers."""
    reason, need = machine_reason(entry, outlook, rejected_by)
    if reason is None:
        return None
    return _numbers(reason, need, entry, outlook, rejected_by)


def machine_reason(
    entry: Entry, outlook: Outlook, rejected_by: Mapping[str, Reason]
) -> tuple[Reason | None, Need | None]:
    """Return the reason alone, and the need that it is about, if it is about one."""
    if _may_be_anything(entry, outlook):
        # It has said nothing of itself: nothing is ruled out but that it is silent.
        silent = entry.trouble or outlook.nearest_miss
        return silent.reason, None
    best: tuple[Reason, Need | None] | None = None
    if outlook.misses:
        best = outlook.nearest_miss.reason, None
    for need in outlook.needs:
        reason = _need_reason(entry, need, outlook, rejected_by)
        if reason is None:
            return None, need
        if best is None or nearness(reason) > nearness(best[0]):
            best = reason, need
    return best or (Reason.DATA_NOT_LOCAL, None)


def _may_be_anything(entry: Entry, outlook: Outlook) -> bool:
    """Return whether nobody knows what the machine would say to this request."""
    return not entry.machine.facts.known and not outlook.hopeless


def resources_of(entry: Entry, request: Request, amounts: Vector) -> Resources:
    """Return *amounts* as resources, with the UUIDs of free devices of each type."""
    wanted = amounts[FIRST_TYPE:]
    return Resources(
        cpu_milli=request.chosen.cpu_milli,
        memory_bytes=request.chosen.memory_bytes,
        disk_bytes=request.chosen.disk_bytes,
        devices=_free_devices(entry, wanted) if any(wanted) else (),
        metal=bool(amounts[METAL]),
    )


def _free_devices(entry: Entry, wanted: Vector) -> tuple[str, ...]:
    taken = {
        uuid
        for allocation in entry.allocations.values()
        for uuid in allocation.resources.devices
    } | {uuid for uuid, _ in entry.machine.foreign}
    devices: list[str] = []
    for count, kind in zip(wanted, entry.signature.types, strict=True):
        if not count:
            continue
        free = sorted(
            (
                device.uuid
                for device in entry.machine.facts.devices
                if device.usable
                and device.uuid is not None
                and device.uuid not in taken
                and type_of(device) == kind
            ),
            # Who may use a free one is nobody of ours: it is the last to be given.
            key=lambda uuid: (uuid in entry.machine.in_use, uuid),
        )
        devices += free[:count]
    return tuple(sorted(devices))


def shortage(free: Vector, need: Need) -> Reason | None:
    """Return what is short of *need*, devices first; None: nothing is."""
    if need.fixed[METAL] and free[METAL] < 1:
        return Reason.METAL_BUSY
    if sum(max(0, free[position]) for position in need.types) < need.devices:
        return Reason.GPU_BUSY
    for position, reason in _BUSY:
        if need.fixed[position] and free[position] < need.fixed[position]:
            return reason
    return None


def _need_reason(
    entry: Entry, need: Need, outlook: Outlook, rejected_by: Mapping[str, Reason]
) -> Reason | None:
    wanted, capacity = need.fixed[DISK], entry.machine.facts.disk_free_bytes
    # The disk differs from machine to machine, so no signature answers for it.
    if wanted and capacity is None:
        return Reason.CAPABILITIES_UNKNOWN
    if capacity is not None and wanted > capacity:
        return Reason.DISK_TOO_SMALL
    if entry.trouble is not None:
        return entry.trouble.reason
    if entry.machine.name in rejected_by:
        code = rejected_by[entry.machine.name]
        return code if code in TOLD_AS_REJECTED else Reason.AGENT_REJECTED
    if outlook.unhealthy is not None:
        return outlook.unhealthy.reason
    return _shortage_of(entry, need)


def _shortage_of(entry: Entry, need: Need) -> Reason | None:
    """Return what is short, told apart by who has it."""
    reason = shortage(entry.free, need)
    if reason is not Reason.GPU_BUSY or not entry.outside:
        return reason
    is_outside = bars(entry.outside, need, entry.capacity)
    return Reason.FOREIGN_PROCESS if is_outside else reason


def _numbers(
    reason: Reason,
    need: Need | None,
    entry: Entry,
    outlook: Outlook,
    rejected_by: Mapping[str, Reason],
) -> Explanation:
    """Return *reason*, which ``machine_reason`` gave, with its numbers."""
    if need is None:
        silent = entry.trouble if _may_be_anything(entry, outlook) else None
        return silent or outlook.nearest_miss
    for known in (entry.trouble, outlook.unhealthy):
        if known is not None and reason is known.reason:
            return known
    if reason is Reason.CAPABILITIES_UNKNOWN:
        return Explanation(reason=reason, subject="disk")
    code = rejected_by.get(entry.machine.name)
    if code is not None and reason in {Reason.AGENT_REJECTED, *TOLD_AS_REJECTED}:
        return Explanation(
            reason=reason, subject=code.value if code is not reason else None
        )
    if reason is Reason.DISK_TOO_SMALL:
        return Explanation(
            reason=reason,
            requested=need.fixed[DISK],
            capacity=entry.machine.facts.disk_free_bytes,
            unit="bytes",
        )
    is_outside = reason is Reason.FOREIGN_PROCESS
    return (
        foreign_process(entry.outside, need)
        if is_outside
        else _busy(entry, need, reason)
    )


def _busy(entry: Entry, need: Need, reason: Reason) -> Explanation:
    positions, unit = _short(need, reason)
    return Explanation(
        reason=reason,
        requested=need.devices
        if reason is Reason.GPU_BUSY
        else need.fixed[positions[0]],
        capacity=sum(entry.capacity[position] for position in positions),
        free=sum(max(0, entry.free[position]) for position in positions),
        unit=unit,
        detail=SOME_MORE
        if entry.outside and reason is Reason.GPU_BUSY and suitable(entry.outside, need)
        else None,
    )


def _unused(entry: Entry, busy: Explanation) -> str | None:
    """Return that what looks unused is held: where it would do, and no room it is."""
    seen = entry.machine.unused_memory_bytes
    if busy.reason is not Reason.MEMORY_BUSY or seen is None:
        return None
    if seen < (busy.requested or 0):
        return None
    return (
        f"at least {describe_bytes(seen)} of it is not in use, and is held all the same"
    )


def _short(need: Need, reason: Reason) -> tuple[tuple[int, ...], str]:
    """Return which amounts are short where a machine is busy, and their unit."""
    if reason is Reason.GPU_BUSY:
        return need.types, "devices"
    position, unit = _POSITIONS[reason]
    return (position,), unit


def _holders(
    entry: Entry, need: Need, reason: Reason, asker: Asker
) -> tuple[Holder, ...]:
    positions, _ = _short(need, reason)
    held = {
        workload: sum([hold.amounts[position] for position in positions])
        for workload, hold in entry.holds.items()
    }
    return told(
        # Only whose end could give back some of these amounts.
        [entry.allocations[workload] for workload, amount in held.items() if amount],
        lambda item: held[item.workload],
        viewer=asker.principal,
        names_visible=asker.names_visible,
        rested=dict(entry.machine.rested),
        idle=dict(entry.machine.idle),
    )
