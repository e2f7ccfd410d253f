"""Other values of one requirement that are worth a try, the smallest change first.

Only amounts that some machine has are tried: between those nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, overload

from typing_extensions import override

from fleet_contracts.amounts import format_bytes, format_cores
from fleet_contracts.catalog import ResourceClass
from fleet_contracts.changes import ChangeKind
from fleet_hub.scheduling.device_filters import devices_of_kind
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.vectors import CPU, DISK, MEMORY, Vector
from fleet_hub.scheduling.versions import version_key


_FINE_BYTES: Final = 256 << 20
_FINE_MILLI: Final = 100
"""Amounts are rounded down to these, so that they can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One other value of one requirement."""

    instead: str
    chosen: ResourceClass
    kept: float
    """Which part of the requirement is left: more is the smaller change."""


def written(kind: ChangeKind, chosen: ResourceClass) -> str:
    """Return what *chosen* asks for, as the catalog writes it."""
    texts = {
        ChangeKind.DEVICE_MEMORY: format_bytes(chosen.device_memory_bytes or 0),
        ChangeKind.DEVICES: str(chosen.devices),
        ChangeKind.CPU: format_cores(chosen.cpu_milli),
        ChangeKind.MEMORY: format_bytes(chosen.memory_bytes),
        ChangeKind.DISK: format_bytes(chosen.disk_bytes),
        ChangeKind.COMPUTE_CAPABILITY: chosen.compute_capability or "",
        ChangeKind.DEVICE_MODEL: " or ".join(chosen.device_models),
    }
    return texts[kind]


class _Amounts(Sequence[Step]):
    """Lower amounts of one field, the largest first; a step is made when looked at.

    Every disk of a large fleet has an amount of its own, and few are looked at.
    """

    def __init__(
        self, chosen: ResourceClass, field: str, values: Iterable[int], fine: int
    ) -> None:
        self._chosen = chosen
        self._field = field
        self._requested: int = getattr(chosen, field) or 0
        below = {value // fine for value in values if 0 < value < self._requested}
        self._values = [value * fine for value in sorted(below - {0}, reverse=True)]
        self._write = format_cores if field == "cpu_milli" else format_bytes

    @override
    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, position: int) -> Step: ...

    @overload
    def __getitem__(self, position: slice) -> Sequence[Step]: ...

    @override
    def __getitem__(self, position: int | slice) -> Step | Sequence[Step]:
        if isinstance(position, slice):
            return [self[each] for each in range(len(self))[position]]
        value = self._values[position]
        return Step(
            instead=self._write(value),
            chosen=self._chosen.model_copy(update={self._field: value}),
            kept=value / self._requested,
        )


def _device_memory(
    fleet: Fleet, chosen: ResourceClass, beside: Iterable[Vector]
) -> Sequence[Step]:
    values = (
        device.memory_bytes or 0
        for group in fleet.groups.values()
        for device in devices_of_kind(group.signature.facts, chosen.accelerator)
    )
    return _Amounts(chosen, "device_memory_bytes", values, _FINE_BYTES)


def _devices(
    fleet: Fleet, chosen: ResourceClass, beside: Iterable[Vector]
) -> Sequence[Step]:
    return [
        Step(
            instead=str(number),
            chosen=chosen.model_copy(update={"devices": number}),
            kept=number / chosen.devices,
        )
        for number in range(chosen.devices - 1, 0, -1)
    ]


def _cpu(
    fleet: Fleet, chosen: ResourceClass, beside: Iterable[Vector]
) -> Sequence[Step]:
    values = {
        group.signature.facts.cores_milli or 0 for group in fleet.groups.values()
    } | _free(fleet, beside, CPU)
    return _Amounts(chosen, "cpu_milli", values, _FINE_MILLI)


def _memory(
    fleet: Fleet, chosen: ResourceClass, beside: Iterable[Vector]
) -> Sequence[Step]:
    values = {
        group.signature.facts.memory_bytes or 0 for group in fleet.groups.values()
    } | _free(fleet, beside, MEMORY)
    return _Amounts(chosen, "memory_bytes", values, _FINE_BYTES)


def _disk(
    fleet: Fleet, chosen: ResourceClass, beside: Iterable[Vector]
) -> Sequence[Step]:
    if not chosen.disk_bytes:
        return []  # nothing is asked for, and the disks are as many as the machines
    values = {
        amount
        for entry in fleet.entries.values()
        for amount in (entry.capacity[DISK], entry.free[DISK])
    } | {amounts[DISK] for amounts in beside}
    return _Amounts(chosen, "disk_bytes", values, _FINE_BYTES)


def _compute_capability(
    fleet: Fleet, chosen: ResourceClass, beside: Iterable[Vector]
) -> Sequence[Step]:
    least = version_key(chosen.compute_capability or "")
    if least is None:
        return []
    keys = {
        version_key(device.compute_capability or ""): device.compute_capability or ""
        for group in fleet.groups.values()
        for device in devices_of_kind(group.signature.facts, chosen.accelerator)
    }
    lower = sorted(key for key in keys if key is not None and key < least)
    return [
        Step(
            instead=keys[key],
            chosen=chosen.model_copy(update={"compute_capability": keys[key]}),
            # Newer devices are not a part of older ones: said after amounts.
            kept=0.0,
        )
        for key in reversed(lower)
    ]


def _device_model(
    fleet: Fleet, chosen: ResourceClass, beside: Iterable[Vector]
) -> Sequence[Step]:
    if not chosen.device_models:
        return []
    names = {
        device.name
        for group in fleet.groups.values()
        for device in devices_of_kind(group.signature.facts, chosen.accelerator)
        if device.name is not None
    }
    return [
        Step(
            instead=name,
            chosen=chosen.model_copy(update={"device_models": (name,)}),
            kept=0.0,
        )
        for name in sorted(names)
    ]


def _free(fleet: Fleet, beside: Iterable[Vector], position: int) -> set[int]:
    """Return the amounts that machines have free now, beside promises too."""
    return {
        bucket[position]
        for group in fleet.groups.values()
        for bucket in group.pool.buckets
    } | {amounts[position] for amounts in beside}


STEPS: Final[
    Mapping[
        ChangeKind,
        Callable[[Fleet, ResourceClass, Iterable[Vector]], Sequence[Step]],
    ]
] = {
    ChangeKind.DEVICE_MEMORY: _device_memory,
    ChangeKind.DEVICES: _devices,
    ChangeKind.CPU: _cpu,
    ChangeKind.MEMORY: _memory,
    ChangeKind.DISK: _disk,
    ChangeKind.COMPUTE_CAPABILITY: _compute_capability,
    ChangeKind.DEVICE_MODEL: _device_model,
}
"""By kind, from a fleet, a class, and what is free where others are promised something."""
