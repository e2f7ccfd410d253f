"""From the cells of a row to a device, and from devices to a conclusion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.nvidia.faults import warning_reason
from fleet_agent.probes.nvidia.fields import Cell, mib
from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    DeviceUsage,
    MigInstance,
    ProbeStatus,
)


def device(row: dict[str, Cell]) -> AcceleratorDevice:
    """Return the device that *row* describes."""
    broken = any(cell.broken for cell in row.values())
    uncertain = any(cell.uncertain for cell in row.values())
    mig = _mig(row.get("mig.mode.current"))
    # With MIG on, no process can use the card as a whole.
    usable = None if uncertain or mig else True
    index = _value(row, "index")
    return nvidia_device(
        index=int(index) if index is not None else None,
        uuid=_value(row, "uuid"),
        name=_value(row, "name"),
        memory_mib=mib(_value(row, "memory.total")),
        compute_capability=_value(row, "compute_cap"),
        driver_version=_value(row, "driver_version"),
        healthy=False if broken else None if uncertain else True,
        execution_supported=False if broken else usable,
        pci_bus_id=_value(row, "pci.bus_id"),
        mig_enabled=mig,
    )


def nvidia_device(**facts: Any) -> AcceleratorDevice:
    """Return an NVIDIA device with *facts*; what is not among them is unknown.

    ``memory_kind`` stays unknown: no field of nvidia-smi proves it, and one unified
    part reports a number that is not its pool.
    """
    return AcceleratorDevice(
        accelerator=DeviceKind.CUDA,
        vendor="nvidia",
        **{name: value for name, value in facts.items() if value is not None},
    )


def usage(row: dict[str, Cell]) -> DeviceUsage:
    """Return what *row* says about the moment."""
    percent = mib(_value(row, "utilization.gpu")) or 0
    known_percent = _value(row, "utilization.gpu") is not None
    free, used = (_value(row, f"memory.{part}") for part in ("free", "used"))
    # Where some is free an amount is told, and so 0 is one.
    is_idle = mib(free) is not None and used is not None and mib(used) is None
    return DeviceUsage(
        accelerator=DeviceKind.CUDA,
        uuid=_value(row, "uuid"),
        index=int(index) if (index := _value(row, "index")) is not None else None,
        memory_free_mib=mib(free),
        memory_used_mib=0 if is_idle else mib(used),
        utilisation_percent=min(percent, 100) if known_percent else None,
    )


def _value(row: dict[str, Cell], field: str) -> str | None:
    found = row.get(field)
    return None if found is None else found.value


def _mig(cell: Cell | None) -> bool | None:
    if cell is None or cell.broken or cell.uncertain:
        return None
    # Unknown here means that the board offers no MIG.
    return cell.value is not None and cell.value.lower() in ("enabled", "active")


def broken_reason(rows: Iterable[dict[str, Cell]]) -> str | None:
    """Return why some device is not healthy."""
    for row in rows:
        for cell in row.values():
            if cell.broken is not None:
                return cell.broken
    return None


def conclude(
    devices: tuple[AcceleratorDevice, ...],
    *,
    complete: bool = True,
    partial: str | None = None,
    note: str | None = None,
    warnings: tuple[str, ...] = (),
    facts: dict[str, Any] | None = None,
) -> Answer:
    """Return an answer that holds *devices*.

    *partial* is why the list or a device is not whole; *note* a code worth saying of
    an otherwise good answer.
    """
    if partial is not None:
        status, reason = ProbeStatus.PARTIAL, partial
    elif warnings:
        status = ProbeStatus.OK_WITH_WARNINGS
        reason = warning_reason(warnings)
    else:
        status, reason = ProbeStatus.OK, note or "ok"
    return Answer(
        status=status,
        reason=reason,
        devices=devices,
        devices_complete=complete,
        warnings=warnings,
        facts=facts or {},
    )


def mig_facts(devices: tuple[AcceleratorDevice, ...]) -> dict[str, Any]:
    """Return what the devices say about MIG."""
    modes = [item.mig_enabled for item in devices if item.mig_enabled is not None]
    instances: list[MigInstance] = [
        instance for item in devices for instance in item.mig_instances
    ]
    facts: dict[str, Any] = {"mig_enabled": any(modes)} if modes else {}
    if instances:
        facts["mig_instances"] = [instance.model_dump() for instance in instances]
    return facts
