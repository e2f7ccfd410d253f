"""Reads what rocm-smi and amd-smi print for people, as far as it is unambiguous."""

from __future__ import annotations

import re
from typing import Final

from fleet_agent.probes.amd.devices import (
    amd_device,
    card_name,
    from_keys,
    target,
    version,
)
from fleet_agent.probes.text import known, lines, positive
from fleet_contracts.capabilities import AcceleratorDevice


_BLOCK: Final = re.compile(r"GPU: (\d{1,4})")
_PAIR: Final = re.compile(r"\s+([A-Z][A-Z0-9_ ]*): *(.*)")
_ROCM: Final = re.compile(r"GPU\[(\d{1,4})\]\s*: ([^:]{1,60}?)\s*:\s*(.*)")
_FRAME: Final = re.compile(r"[=\s-]*|=+ .* =+|.*end of rocm smi log.*", re.IGNORECASE)
_MONITOR: Final = re.compile(r"GPU  +\S+.*")
_MONITOR_ROW: Final = re.compile(r"\s*(\d{1,4})  +\S.*")

Read = tuple[tuple[AcceleratorDevice, ...], list[str]]


def read_plain(text: str) -> Read | None:
    """Return the devices of a text, and the lines that are no part of it."""
    return _blocks(text) or _rocm(text) or _monitor(text)


def _blocks(text: str) -> Read | None:
    """``GPU: 0`` with sections of ``KEY: value`` below, as ``amd-smi static`` prints."""
    found: list[tuple[int, dict[str, str]]] = []
    other: list[str] = []
    section = ""
    for line in lines(text):
        block, pair = _BLOCK.fullmatch(line.strip()), _PAIR.fullmatch(line)
        if block and not line[0].isspace():
            found.append((int(block[1]), {}))
        elif pair and found:
            if not pair[2]:
                section = pair[1]
            found[-1][1].setdefault(f"{section}.{pair[1]}", pair[2])
        else:
            other.append(line)
    if not found:
        return None
    return tuple(_block_device(index, values) for index, values in found), other


def _block_device(index: int, values: dict[str, str]) -> AcceleratorDevice:
    size, _, unit = values.get("VRAM.SIZE", "").partition(" ")
    return amd_device(
        index=index,
        name=card_name(values.get("ASIC.MARKET_NAME"))
        or card_name(values.get("BOARD.PRODUCT_NAME")),
        memory_mib=positive(size) if unit.strip() in ("MB", "MiB") else None,
        architecture=target(values.get("ASIC.TARGET_GRAPHICS_VERSION")),
        driver_version=version(values.get("DRIVER.VERSION")),
        pci_bus_id=known(values.get("BUS.BDF")),
    )


def _rocm(text: str) -> Read | None:
    """``GPU[0] : Card series: …``, as rocm-smi prints without ``--json``."""
    found: dict[int, dict[str, str]] = {}
    other: list[str] = []
    for line in lines(text):
        pair = _ROCM.fullmatch(line)
        if pair:
            found.setdefault(int(pair[1]), {}).setdefault(pair[2].strip(), pair[3])
        elif not _FRAME.fullmatch(line):
            other.append(line)
    if not found:
        return None
    return tuple(from_keys(index, values) for index, values in found.items()), other


def _monitor(text: str) -> Read | None:
    """A table of readings, one card a line: only the index is exact, amounts are rounded."""
    found: list[AcceleratorDevice] = []
    other: list[str] = []
    started = False
    for line in lines(text):
        row = _MONITOR_ROW.fullmatch(line)
        if _MONITOR.fullmatch(line):
            started = True
        elif started and row:
            found.append(amd_device(index=int(row[1])))
        elif not _FRAME.fullmatch(line):
            other.append(line)
    return (tuple(found), other) if found else None
