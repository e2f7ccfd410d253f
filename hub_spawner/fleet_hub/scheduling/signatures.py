"""What makes machines interchangeable: everything that "can it ever?" depends on.

Names, UUIDs and free disk are particular to each machine and stay outside, or there
would be as many signatures as machines.  So does the owner: whether a principal owns a
machine is asked apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fleet_contracts.capabilities import DeviceKind
from fleet_contracts.placement_facts import PlaceableDevice, PlacementFacts
from fleet_contracts.workloads import Resources
from fleet_hub.scheduling.snapshot import MachineState, Sharing
from fleet_hub.scheduling.vectors import FIRST_TYPE, Vector
from fleet_hub.scheduling.versions import version_key


class DeviceType(NamedTuple):
    """Whole devices of which one is as good as the other."""

    memory_bytes: int
    computes: tuple[int, ...]
    kind: DeviceKind
    model: str
    gpu_driver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What all machines of one signature share."""

    key: str
    facts: PlacementFacts
    """Of one of them: UUIDs and free disk are that machine's own."""
    labels: Mapping[str, str]
    sharing: Sharing
    types: tuple[DeviceType, ...]
    """The types of usable devices that have UUIDs, the least capable first."""
    accelerated: bool

    def capacity(self, facts: PlacementFacts) -> Vector:
        """Return all that a machine with *facts* has; what nobody knows counts as 0."""
        counted = Counter(
            type_of(device) for device in facts.devices if _counts(device)
        )
        return (
            facts.cores_milli or 0,
            facts.memory_bytes or 0,
            facts.disk_free_bytes or 0,
            1,
            *(counted[kind] for kind in self.types),
        )

    def amounts(self, resources: Resources, facts: PlacementFacts) -> Vector:
        """Return what *resources* are of a machine with *facts*."""
        held: Counter[DeviceType] = Counter()
        if resources.devices:
            held.update(
                type_of(device)
                for device in facts.devices
                if _counts(device) and device.uuid in resources.devices
            )
        return (
            resources.cpu_milli,
            resources.memory_bytes,
            resources.disk_bytes,
            int(resources.metal),
            *(held[kind] for kind in self.types),
        )

    def position(self, kind: DeviceType) -> int:
        """Return where *kind* stands in a vector."""
        return FIRST_TYPE + self.types.index(kind)


def signature_of(machine: MachineState) -> Signature:
    """Return the signature of *machine*."""
    facts, sharing = machine.facts, machine.sharing
    kinds = {type_of(device) for device in facts.devices if _counts(device)}
    key = "\n".join(
        (
            facts.model_dump_json(
                exclude={"disk_free_bytes": True, "devices": {"__all__": {"uuid"}}}
            ),
            repr(sorted(machine.labels.items())),
            f"{sharing.admin_allows} {sharing.owner_allows}",
            repr((sorted(sharing.users), sorted(sharing.groups))),
        )
    )
    return Signature(
        key=key,
        facts=facts,
        labels=machine.labels,
        sharing=sharing,
        types=tuple(sorted(kinds)),
        accelerated=bool(facts.devices),
    )


def type_of(device: PlaceableDevice) -> DeviceType:
    """Return the type of *device*."""
    return DeviceType(
        memory_bytes=device.memory_bytes or 0,
        computes=version_key(device.compute_capability or "") or (),
        kind=device.accelerator,
        model=device.name or "",
        gpu_driver=device.driver_version or "",
    )


def _counts(device: PlaceableDevice) -> bool:
    return device.usable and device.uuid is not None
