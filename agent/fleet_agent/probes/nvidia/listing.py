"""Reads ``nvidia-smi -L``: one line for each GPU, and its MIG instances below it."""

from __future__ import annotations

import re
from typing import Final

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.nvidia.devices import conclude, mig_facts, nvidia_device
from fleet_agent.probes.nvidia.faults import fault
from fleet_agent.probes.text import known, lines, shortened
from fleet_contracts.capabilities import AcceleratorDevice, MigInstance


_GPU: Final = re.compile(
    r"GPU (?P<index>\d{1,4}): (?P<name>.*?)(?:\s*\(UUID: (?P<uuid>[^)]*)\))?"
)
_MIG: Final = re.compile(
    r"\s*MIG (?P<name>.*?)\s*Device\s+\d+:\s*\(UUID: (?P<uuid>[^)]*)\)"
)
_UUID: Final = re.compile(r"(GPU|MIG)-[\w/-]+")


def read_listing(text: str) -> Answer | None:
    """Return the devices of a listing, or None if *text* holds no such line."""
    devices: dict[int, AcceleratorDevice] = {}
    warnings: list[str] = []
    last: int | None = None
    for line in lines(text):
        gpu, mig = _GPU.fullmatch(line), _MIG.fullmatch(line)
        if gpu and known(gpu["name"]):
            last = int(gpu["index"])
            devices[last] = nvidia_device(
                index=last,
                uuid=_uuid(gpu["uuid"]),
                name=gpu["name"].strip(),
                healthy=True,
                execution_supported=True,
            )
        elif mig and last is not None:
            devices[last] = _with_instance(devices[last], mig["name"], mig["uuid"])
        else:
            warnings.append(shortened(line))
    if not devices:
        return None
    found = tuple(devices.values())
    broken = fault("\n".join(warnings))
    return conclude(
        found,
        complete=broken is None,
        partial=broken,
        note="mig_enabled" if any(item.mig_enabled for item in found) else None,
        warnings=tuple(warnings[:50]),
        facts=mig_facts(found),
    )


def _uuid(text: str | None) -> str | None:
    value = known(text)
    return value if value is not None and _UUID.fullmatch(value) else None


def _with_instance(
    device: AcceleratorDevice, name: str, uuid: str
) -> AcceleratorDevice:
    instance = MigInstance(name=known(name), uuid=_uuid(uuid))
    return device.model_copy(
        update={
            "mig_enabled": True,
            "mig_instances": (*device.mig_instances, instance),
            "execution_supported": None,
        }
    )
