"""Reads ``system_profiler SPDisplaysDataType``, as JSON and as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleet_agent.probes.text import known, lines


_VENDORS: Final = {"106b": "apple", "1002": "amd", "8086": "intel", "10de": "nvidia"}
_NAMED_VENDOR: Final = re.compile(r"(apple|amd|ati|intel|nvidia)", re.IGNORECASE)
_VENDOR_ID: Final = re.compile(r"\(0x([0-9a-f]{4})\)", re.IGNORECASE)
_AMOUNT: Final = re.compile(r"(\d{1,6}) ?(MB|GB)", re.IGNORECASE)
_BLOCK: Final = re.compile(r" {4}(\S.*):")
_PAIR: Final = re.compile(r" {6}(\S[^:]{0,60}): ?(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """One graphics entry."""

    name: str | None = None
    vendor: str = "unknown"
    cores: int | None = None
    memory_mib: int | None = None

    @property
    def paravirtual(self) -> bool:
        """Whether a virtual machine provides it."""
        return "paravirtual" in (self.name or "").lower()


def read_json(text: str) -> tuple[Display, ...] | None:
    """Return the entries of the JSON form, or None if it is none."""
    start = text.find("{")
    try:
        value, _ = json.JSONDecoder().raw_decode(text, max(start, 0))
    except (ValueError, RecursionError):
        return None
    entries = value.get("SPDisplaysDataType") if isinstance(value, Mapping) else None
    if not isinstance(entries, list):
        return None
    return tuple(_from_json(entry) for entry in entries if isinstance(entry, Mapping))


def _from_json(entry: Mapping[str, Any]) -> Display:
    # _name is an internal token on some releases; displays are nested and are no GPUs.
    own = str(entry.get("spdisplays_vendor") or "")
    vendor = _vendor(own)
    return Display(
        name=known(entry.get("sppci_model")),
        vendor=vendor,
        cores=_whole(known(entry.get("sppci_cores"))),
        memory_mib=_memory(entry.get("spdisplays_vram")),
    )


def _vendor(text: str) -> str:
    numbered = _VENDOR_ID.search(text)
    if numbered and numbered[1].lower() in _VENDORS:
        return _VENDORS[numbered[1].lower()]
    named = _NAMED_VENDOR.search(text)
    name = named[1].lower() if named else "unknown"
    return "amd" if name == "ati" else name


def _memory(text: object) -> int | None:
    amount = _AMOUNT.fullmatch(known(text) or "")
    if amount is None:
        return None
    return int(amount[1]) * (1024 if amount[2].upper() == "GB" else 1) or None


def _whole(text: str | None) -> int | None:
    match = re.match(r"\d{1,4}", text or "")
    return (int(match[0]) or None) if match else None


def read_text(text: str) -> tuple[Display, ...] | None:
    """Return the entries of the text form; only its keys are translated, not its shape.

    An entry's heading is its model's name in every language, and a vendor carries its
    PCI number.
    """
    found: list[tuple[str, dict[str, str]]] = []
    for line in lines(text):
        block, pair = _BLOCK.fullmatch(line), _PAIR.fullmatch(line)
        if block:
            found.append((block[1], {}))
        elif pair and found:
            found[-1][1].setdefault(pair[1].strip(), pair[2].strip())
    entries = [_from_text(name, pairs) for name, pairs in found if pairs]
    return tuple(entries) or None


def _from_text(name: str, pairs: Mapping[str, str]) -> Display:
    numbered = [value for value in pairs.values() if _VENDOR_ID.search(value)]
    shared = any("dynamic" in key.lower() for key in pairs)
    memory = next(
        (value for key, value in pairs.items() if "vram" in key.lower()), None
    )
    return Display(
        name=known(pairs.get("Chipset Model")) or known(name),
        vendor=_vendor(pairs.get("Vendor") or (numbered[0] if numbered else "")),
        cores=_whole(pairs.get("Total Number of Cores")),
        # "Dynamic, Max" is a share of the machine's memory.
        memory_mib=None if shared else _memory(memory),
    )
