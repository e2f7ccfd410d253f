"""Reads ``nvidia-smi -q``: indented ``key : value`` lines, one block for each GPU."""

from __future__ import annotations

import re
from typing import Final

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.nvidia.devices import conclude, mig_facts, nvidia_device
from fleet_agent.probes.nvidia.fields import BROKEN, cell, mib
from fleet_agent.probes.text import lines, shortened
from fleet_contracts.capabilities import AcceleratorDevice


_BLOCK: Final = re.compile(
    r"GPU (?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)"
)
_PAIR: Final = re.compile(r"(?P<indent> *)(?P<key>[^:\[\]]{1,60}?) +: (?P<value>.*)")
_SECTION: Final = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z][^:\[\]]{0,60})")
_TITLE: Final = re.compile(r"=+NVSMI LOG=+")

Pairs = dict[str, str]


def read_log(text: str) -> Answer | None:
    """Return the devices of a log, or None if *text* is none."""
    all_lines = lines(text)
    if not any(_TITLE.fullmatch(line.strip()) for line in all_lines):
        return None
    head: Pairs = {}
    blocks: list[tuple[str, Pairs]] = []
    warnings: list[str] = []
    section = ""
    for line in all_lines:
        block, pair, title = (
            _BLOCK.fullmatch(line),
            _PAIR.fullmatch(line),
            _SECTION.fullmatch(line),
        )
        current = blocks[-1][1] if blocks else head
        if block:
            blocks.append((block["bus"], {}))
        elif pair:
            prefix = f"{section}." if len(pair["indent"]) > 4 else ""  # noqa: PLR2004 - a block's own keys have four
            current.setdefault(f"{prefix}{pair['key'].strip()}".lower(), pair["value"])
        elif title and blocks:
            section = title["key"].strip()
        elif not _TITLE.fullmatch(line.strip()):
            warnings.append(shortened(line))
    if not blocks:
        return None
    return _conclude(head, blocks, tuple(warnings[:50]))


def _conclude(
    head: Pairs, blocks: list[tuple[str, Pairs]], warnings: tuple[str, ...]
) -> Answer:
    driver = _value("driver_version", head.get("driver version"))
    devices = tuple(_device(bus, pairs, driver) for bus, pairs in blocks)
    attached = _value("count", head.get("attached gpus"))
    whole = attached is None or int(attached) == len(blocks)
    broken = next(
        (
            BROKEN[value.strip().lower()]
            for _, pairs in blocks
            for value in pairs.values()
            if value.strip().lower() in BROKEN
        ),
        None,
    )
    return conclude(
        devices,
        complete=whole,
        partial=broken or (None if whole else "devices_missing"),
        note=_note(devices, [pairs for _, pairs in blocks]),
        warnings=warnings,
        facts=mig_facts(devices),
    )


def _note(devices: tuple[AcceleratorDevice, ...], blocks: list[Pairs]) -> str | None:
    if any(device.mig_enabled for device in devices):
        return "mig_enabled"
    for device, pairs in zip(devices, blocks, strict=True):
        if device.memory_mib is None and "fb memory usage.total" in pairs:
            return "memory_not_reported"
    return None


def _device(bus: str, pairs: Pairs, driver: str | None) -> AcceleratorDevice:
    broken = any(value.strip().lower() in BROKEN for value in pairs.values())
    mig = _value("mig.mode.current", pairs.get("mig mode.current"))
    mig_enabled = None if mig is None else mig.lower() == "enabled"
    return nvidia_device(
        uuid=_value("uuid", pairs.get("gpu uuid")),
        name=_value("name", pairs.get("product name")),
        memory_mib=mib(_value("memory.total", pairs.get("fb memory usage.total"))),
        driver_version=driver,
        healthy=not broken,
        execution_supported=False if broken else None if mig_enabled else True,
        pci_bus_id=bus,
        mig_enabled=mig_enabled,
    )


def _value(field: str, raw: str | None) -> str | None:
    found = cell(field, raw) if raw is not None else None
    return None if found is None else found.value
