"""The rule for Macs: Apple Silicon has exactly one ``mps`` device, whatever tools say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleet_agent.probes.text import known
from fleet_contracts.capabilities import AcceleratorDevice, DeviceKind, MemoryKind


_CHIP: Final = re.compile(r"Apple [A-Z]\d+\b.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mac:
    """What is known about the computer that a macOS tool ran on; None is unknown."""

    apple_silicon: bool | None = None
    virtual: bool | None = None
    chip: str | None = None
    os: str | None = None

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Mac:
        """Return what other sources know."""
        return cls(
            apple_silicon=_flag(context.get("apple_silicon")),
            virtual=_flag(context.get("virtual_machine")),
            chip=chip(context.get("cpu_brand")),
            os=known(context.get("os")),
        )

    def told(self, *, apple_silicon: bool | None, virtual: bool | None) -> Mac:
        """Return this Mac with what a tool's own output says where nothing is known."""
        return Mac(
            apple_silicon=(
                self.apple_silicon if self.apple_silicon is not None else apple_silicon
            ),
            virtual=True if virtual else self.virtual,
            chip=self.chip,
            os=self.os,
        )


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def chip(value: object) -> str | None:
    """Return a processor's brand where it names the chip and with it the GPU."""
    brand = known(value)
    if brand is None or "(Virtual)" in brand or not _CHIP.fullmatch(brand):
        return None
    return brand


def metal_device(
    mac: Mac, *, name: str | None = None, memory_mib: int | None = None
) -> AcceleratorDevice:
    """Return the Mac's GPU.

    A guest's paravirtual GPU claims Metal and may fail at the first allocation, so
    only an operation on it can tell whether it works.
    """
    return AcceleratorDevice(
        accelerator=DeviceKind.MPS,
        vendor="apple",
        index=0,
        name=name or (None if mac.virtual else mac.chip),
        memory_mib=memory_mib,
        memory_kind=MemoryKind.UNIFIED,
        execution_supported=None if mac.virtual else True,
    )


def foreign_device(
    index: int, *, vendor: str, name: str | None, memory_mib: int | None
) -> AcceleratorDevice:
    """Return a GPU of an Intel Mac: it draws, and nothing here computes on it."""
    return AcceleratorDevice(
        accelerator=DeviceKind.OTHER,
        vendor=vendor,
        index=index,
        name=name,
        memory_mib=memory_mib,
        memory_kind=(
            MemoryKind.UNKNOWN if memory_mib is None else MemoryKind.DEDICATED
        ),
        execution_supported=False,
    )
