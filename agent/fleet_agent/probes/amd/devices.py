"""From one card's named values to a device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from fleet_agent.probes.text import known, positive
from fleet_contracts.capabilities import AcceleratorDevice, DeviceKind


# gfx9010 is the decimal spelling of gfx90a, and no target: one or two digits of
# generation, then two hexadecimal ones.
_TARGET: Final = re.compile(r"gfx(?:[6-9]|1[0-9])[0-9a-f]{2}")
_HEX: Final = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)
_VERSION: Final = re.compile(r"\d+\.\d+[\w.+-]{0,40}")
_MEMORY_KEYS: Final = (
    ("vram total memory (b)", 1024 * 1024),
    ("vram total memory (mib)", 1),
)
_NAME_KEYS: Final = ("card series", "device name", "market name", "card model")


def amd_device(
    *,
    index: int | None,
    name: str | None = None,
    memory_mib: int | None = None,
    architecture: str | None = None,
    driver_version: str | None = None,
    pci_bus_id: str | None = None,
    vendor: str = "amd",
) -> AcceleratorDevice:
    """Return an AMD device: its tools prove presence, so nothing is run on it."""
    return AcceleratorDevice(
        accelerator=DeviceKind.ROCM,
        vendor=vendor,
        index=index,
        name=name,
        memory_mib=memory_mib,
        architecture=architecture,
        driver_version=driver_version,
        execution_supported=False,
        pci_bus_id=pci_bus_id,
    )


def target(value: object) -> str | None:
    """Return a valid gfx target without its features."""
    text = known(value)
    plain = (text or "").split(":", 1)[0].strip().lower()
    return plain if _TARGET.fullmatch(plain) else None


def card_name(value: object) -> str | None:
    """Return a name; a hexadecimal PCI id is none."""
    text = known(value)
    return None if text is None or _HEX.fullmatch(text) else text[:120]


def version(value: object) -> str | None:
    """Return a driver's version."""
    text = known(value)
    return text if text is not None and _VERSION.fullmatch(text) else None


def from_keys(
    index: int | None, values: Mapping[str, Any], driver: str | None = None
) -> AcceleratorDevice:
    """Return the device behind rocm-smi's keys, whose capitals vary by version."""
    plain = {str(key).strip().lower(): value for key, value in values.items()}
    names = (card_name(plain.get(key)) for key in _NAME_KEYS)
    return amd_device(
        index=index,
        name=next((name for name in names if name is not None), None),
        memory_mib=_memory(plain),
        architecture=target(plain.get("gfx version")),
        driver_version=version(plain.get("driver version")) or driver,
        pci_bus_id=known(plain.get("pci bus")),
        vendor=_vendor(plain.get("card vendor")),
    )


def _vendor(text: object) -> str:
    """Return the vendor that the tool itself names: its cards are not all AMD's."""
    return "hygon" if re.search(r"haiguang|hygon", str(text), re.IGNORECASE) else "amd"


def _memory(plain: Mapping[str, Any]) -> int | None:
    for key, per_mib in _MEMORY_KEYS:
        amount = positive(plain.get(key))
        if amount is not None:
            return amount // per_mib or None
    return None
