"""What several machines say they have is given through one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fleet_contracts.workloads import DriverName, Resources
from fleet_hub.controller.model import Model
from fleet_hub.controller.records import MachineRecord
from fleet_hub.scheduling.same_device import Claim, counts_to, metal_of, named_by


def follow(model: Model, machines: Iterable[str]) -> set[str]:
    """Learn what *machines* have by now; return whoever shares a device with another."""
    names = tuple(machines)
    before = model.devices.beside(names)
    for name in names:
        record = model.machines[name]
        model.devices.put(name, _reported(model, record) | _held(model, record))
    return before | model.devices.beside(names)


def elsewhere(model: Model, record: MachineRecord) -> dict[str, str]:
    """Return the devices of a machine that count to another one, and to which."""
    found = {}
    for device in model.devices.shared_by(record.name):
        claims = [
            _claim(model, model.machines[name], device)
            for name in model.devices.having(device)
        ]
        first = counts_to(claims)
        if first is not None and first != record.name:
            found[device] = first
    return found


def _claim(model: Model, record: MachineRecord, device: str) -> Claim:
    online = model.presence[record.name].online
    return Claim(
        machine=record.name,
        since=record.enrolled_at.timestamp(),
        reports=online and device in _reported(model, record),
        holds=device in _held(model, record),
    )


def _reported(model: Model, record: MachineRecord) -> frozenset[str]:
    return named_by(model.presence[record.name].facts, record.boot_id)


def _held(model: Model, record: MachineRecord) -> frozenset[str]:
    metal = metal_of(record.boot_id)
    found: set[str] = set()
    for driver, resources in _holds(model, record.name):
        found.update(resources.devices)
        if metal and resources.metal and driver is DriverName.NATIVE:
            found.add(metal)
    return frozenset(found)


def _holds(model: Model, machine: str) -> Iterator[tuple[DriverName, Resources]]:
    """Yield what is held of a machine, what ended for us and still runs included."""
    for record in model.holders(machine):
        if record.assignment is not None:
            yield record.assignment.runtime.driver, record.assignment.resources
    for allocation in model.presence[machine].leftovers:
        if allocation in model.issued:
            issued = model.issued[allocation]
            yield issued.driver, issued.resources
