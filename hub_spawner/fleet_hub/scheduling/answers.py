"""What one machine answers to one request, with numbers and holders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Principal, Resources
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.holders import told
from fleet_hub.scheduling.nearness import nearness
from fleet_hub.scheduling.outlooks import Outlook
from fleet_hub.scheduling.pools import Entry
from fleet_hub.scheduling.signatures import type_of
from fleet_hub.scheduling.snapshot import Allocation, Pin
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
    (METAL, Reason.METAL_BUSY, None),
    (CPU, Reason.CPU_BUSY, "milli_cores"),
    (MEMORY, Reason.MEMORY_BUSY, "bytes"),
    (DISK, Reason.DISK_BUSY, "bytes"),
)


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
    if need is None:
        answer = entry.trouble or outlook.nearest_miss
        if entry.machine.facts.known:
            answer = outlook.nearest_miss
    else:
        answer = _explained(reason, entry, need, outlook, asker)
    return answer.model_copy(update={"machine": entry.machine.name})


def machine_reason(
    entry: Entry, outlook: Outlook, rejected_by: Mapping[str, Reason]
) -> tuple[Reason | None, Need | None]:
    """Return the reason alone, and the need that it is about, if it is about one."""
    if not entry.machine.facts.known:
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


def resources_of(entry: Entry, request: Request, amounts: Vector) -> Resources:
    """Return *amounts* as resources, with the UUIDs of free devices of each type."""
    wanted = amounts[FIRST_TYPE:]
    taken = {
        uuid
        for allocation in entry.allocations.values()
        for uuid in allocation.resources.devices
    }
    devices: list[str] = []
    for count, kind in zip(wanted, entry.signature.types, strict=True):
        if not count:
            continue
        free = sorted(
            device.uuid
            for device in entry.machine.facts.devices
            if device.usable
            and device.uuid is not None
            and device.uuid not in taken
            and type_of(device) == kind
        )
        devices += free[:count]
    return Resources(
        cpu_milli=request.chosen.cpu_milli,
        memory_bytes=request.chosen.memory_bytes,
        disk_bytes=request.chosen.disk_bytes,
        devices=tuple(sorted(devices)),
        metal=bool(amounts[METAL]),
    )


def shortage(free: Vector, need: Need) -> Reason | None:
    """Return what is short of *need*, devices first; None: nothing is."""
    if need.fixed[METAL] and free[METAL] < 1:
        return Reason.METAL_BUSY
    if sum(max(0, free[position]) for position in need.types) < need.devices:
        return Reason.GPU_BUSY
    for position, reason, _ in _BUSY[1:]:
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
        return Reason.AGENT_REJECTED
    if outlook.unhealthy is not None:
        return outlook.unhealthy.reason
    return shortage(entry.free, need)


def _explained(
    reason: Reason, entry: Entry, need: Need, outlook: Outlook, asker: Asker
) -> Explanation:
    """Return *reason*, which ``_need_reason`` gave, with its numbers."""
    if entry.trouble is not None and reason is entry.trouble.reason:
        return entry.trouble
    if outlook.unhealthy is not None and reason is outlook.unhealthy.reason:
        return outlook.unhealthy
    if reason is Reason.CAPABILITIES_UNKNOWN:
        return Explanation(reason=reason, subject="disk")
    if reason is Reason.AGENT_REJECTED:
        code = asker.rejected_by[entry.machine.name]
        return Explanation(reason=reason, subject=code.value)
    if reason is Reason.DISK_TOO_SMALL:
        return Explanation(
            reason=reason,
            requested=need.fixed[DISK],
            capacity=entry.machine.facts.disk_free_bytes,
            unit="bytes",
        )
    return _busy(entry, need, reason, asker)


def _busy(entry: Entry, need: Need, reason: Reason, asker: Asker) -> Explanation:
    capacity = entry.signature.capacity(entry.machine.facts)
    positions: Iterable[int] = need.types
    requested, unit = need.devices, "devices"
    for position, code, its_unit in _BUSY:
        if code is reason:
            positions = (position,)
            requested, unit = need.fixed[position], its_unit or "devices"
    positions = tuple(positions)
    return Explanation(
        reason=reason,
        requested=requested,
        capacity=sum(capacity[position] for position in positions),
        free=sum(max(0, entry.free[position]) for position in positions),
        unit=unit,
        holders=told(
            _holding(entry, positions),
            viewer=asker.principal.name,
            names_visible=asker.names_visible,
        ),
    )


def _holding(entry: Entry, positions: Iterable[int]) -> list[Allocation]:
    """Return whose end could give back some of these amounts."""
    wanted = tuple(positions)
    return [
        entry.allocations[workload]
        for workload, hold in entry.holds.items()
        if any(hold.amounts[position] for position in wanted)
    ]
