"""Reads the JSON of rocm-smi and amd-smi, and rocm-smi's CSV."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from fleet_agent.probes.amd.devices import (
    amd_device,
    card_name,
    from_keys,
    target,
    version,
)
from fleet_agent.probes.text import known, lines, positive
from fleet_contracts.capabilities import AcceleratorDevice


_CARD: Final = re.compile(r"card(\d{1,4})", re.IGNORECASE)
# amd-smi says MB and means MiB: 24560 for a card of 24 GiB.
_MIB_UNITS: Final = ("mb", "mib")

Devices = tuple[AcceleratorDevice, ...]


def find_json(text: str) -> tuple[Any, list[str]] | None:
    """Return the first JSON value that starts a line, and the lines around it."""
    plain = text.replace("\x00", "").replace("\ufeff", "")
    for start in re.finditer(r"^[ \t]*(?=[{\[])", plain, re.MULTILINE):
        try:
            value, end = json.JSONDecoder().raw_decode(plain, start.end())
        except (ValueError, RecursionError):
            continue
        # A log line such as [WARN] is no answer, and no list of strings is.
        if isinstance(value, dict | list):
            return value, lines(plain[: start.start()]) + lines(plain[end:])
    return None


def json_devices(value: Any) -> Devices | None:
    """Return the devices of a decoded answer; None when it lists none by its form."""
    if isinstance(value, Mapping):
        listed = value.get("gpu_data")
        if isinstance(listed, list):
            return _amd_smi(listed)
        return _rocm_smi(value)
    return _amd_smi(value) if isinstance(value, list) else None


def _rocm_smi(value: Mapping[str, Any]) -> Devices | None:
    system = value.get("system")
    driver = (
        version(_lowered(system).get("driver version"))
        if isinstance(system, Mapping)
        else None
    )
    found = [
        from_keys(int(match[1]), card, driver)
        for key, card in value.items()
        if isinstance(card, Mapping) and (match := _CARD.fullmatch(str(key)))
    ]
    return tuple(found) or None


def _lowered(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key).strip().lower(): value for key, value in values.items()}


def _amd_smi(listed: list[Any]) -> Devices | None:
    cards = [card for card in listed if isinstance(card, Mapping) and "gpu" in card]
    if listed and not cards:
        return None
    return tuple(_amd_smi_device(card) for card in cards)


def _amd_smi_device(card: Mapping[str, Any]) -> AcceleratorDevice:
    asic, board, bus, driver = (
        _section(card, name) for name in ("asic", "board", "bus", "driver")
    )
    return amd_device(
        index=_index(card.get("gpu")),
        name=card_name(asic.get("market_name")) or card_name(board.get("product_name")),
        memory_mib=_vram(_section(card, "vram").get("size")),
        architecture=target(asic.get("target_graphics_version")),
        driver_version=version(driver.get("version") or driver.get("driver_version")),
        pci_bus_id=known(bus.get("bdf") or card.get("bdf")),
    )


def _index(value: Any) -> int | None:
    number = re.fullmatch(r"\d{1,4}", str(value))
    return int(number[0]) if number else None


def _section(card: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = card.get(name)
    return section if isinstance(section, Mapping) else {}


def _vram(size: Any) -> int | None:
    """Return MiB; a size in GB is rounded, and therefore unknown."""
    amount, unit = size, ""
    if isinstance(size, Mapping):
        amount, unit = size.get("value"), str(size.get("unit", ""))
    elif isinstance(size, str):
        number, _, unit = size.strip().partition(" ")
        amount = number
    return positive(amount) if unit.strip().lower() in _MIB_UNITS else None


def csv_devices(text: str) -> tuple[Devices, list[str]] | None:
    """Return the devices of rocm-smi's CSV, and the lines that are no part of it."""
    header: list[str] = []
    found: list[AcceleratorDevice] = []
    other: list[str] = []
    for line in lines(text):
        cells = [part.strip() for part in line.split(",")]
        if not header and cells[0].lower() == "device" and len(cells) > 1:
            header = cells
            continue
        match = _CARD.fullmatch(cells[0])
        values = _aligned(header, cells) if header and match else None
        if match is None or values is None:
            if cells[0].lower() != "system":
                other.append(line)
            continue
        found.append(from_keys(int(match[1]), values))
    return (tuple(found), other) if header and found else None


def _aligned(header: list[str], cells: list[str]) -> dict[str, str] | None:
    """Pair cells with their names; a comma too many belongs to the vendor."""
    extra = len(cells) - len(header)
    if extra > 0:
        vendor = next(
            (at for at, name in enumerate(header) if name.lower() == "card vendor"),
            None,
        )
        if vendor is None:
            return None
        middle = ", ".join(cells[vendor : vendor + extra + 1])
        cells = [*cells[:vendor], middle, *cells[vendor + extra + 1 :]]
    return dict(zip(header, cells, strict=True)) if len(cells) == len(header) else None
