"""The form that each column of a query must have, and what its cells mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fleet_agent.probes.text import known


ALIASES: Final = {
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "gpu_index": "index",
    "gpu_serial": "serial",
    "vbios": "vbios_version",
}
_VALUE: Final = r"[-+]?\d+(\.\d+)?( ?[%\w°/]+)?"
_FORMS: Final = {
    "index": r"\d{1,4}",
    "count": r"\d{1,4}",
    "uuid": r"(GPU|MIG)-[\w/-]+",
    "pci.bus_id": r"([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(\.[0-9a-fA-F]+)?",
    "driver_version": r"\d+\.\d+(\.\d+)?",
    "compute_cap": r"\d+\.\d+",
    "memory.total": r"\d+( ?MiB)?",
    "mig.mode.current": r"enabled|disabled|(not )?active",
}
_NUMBERS: Final = re.compile(
    r"(utilization|memory|temperature|power|enforced|clocks|ecc|encoder|decoder|fan"
    r"|pcie\.link|retired_pages|remapped_rows|accounting\.buffer)[._].*"
    r"|fan\.speed|count",
)
_WORDS: Final = re.compile(r"\S{1,64}( \S{1,64}){0,2}")
_NAME: Final = re.compile(r"[A-Za-z][\w .,()+/@®™-]{0,95}")
# Words of sentences; "with" and the like are in real names ("… with Max-Q Design").
_NO_NAME: Final = re.compile(
    r"\b(warnings?|errors?|failed|unable|nvml|nvidia-smi|please|could(n.t)?|cannot"
    r"|invalid|initiali[sz]ing|corrupted|msg|(was|were|not) found|is lost|is not"
    r"|devices? (was|were))\b|\.$",
    re.IGNORECASE,
)
BROKEN: Final = {
    "[gpu is lost]": "gpu_lost",
    "gpu is lost": "gpu_lost",
    "[gpu requires reset]": "gpu_requires_reset",
    "gpu requires reset": "gpu_requires_reset",
    "err!": "device_error",
    "[err!]": "device_error",
}
_UNCERTAIN: Final = re.compile(r"\[?unknown error\]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value of one device: None is unknown."""

    value: str | None
    raw: str

    @property
    def broken(self) -> str | None:
        """Why the device is not healthy, if the cell says so."""
        return BROKEN.get(self.raw.lower())

    @property
    def uncertain(self) -> bool:
        """Whether the driver itself met an error that it cannot name."""
        return _UNCERTAIN.fullmatch(self.raw) is not None


def canonical(name: str) -> str:
    """Return a field by the name that a header would print."""
    plain = name.strip().lower()
    return ALIASES.get(plain, plain)


def cell(field: str, raw: str) -> Cell | None:
    """Return *raw* as a cell of *field*, or None if it cannot be one."""
    text = raw.strip()
    value = known(text)
    # "GPU requires reset" without its brackets is a word of the tool, not a value.
    if value is None or text.lower() in BROKEN:
        return Cell(value=None, raw=text)
    return Cell(value=value, raw=text) if _fits(field, value) else None


def _fits(field: str, value: str) -> bool:
    form = _FORMS.get(field)
    if form is not None:
        return re.fullmatch(form, value, re.IGNORECASE) is not None
    if field == "name":
        return _NAME.fullmatch(value) is not None and not _NO_NAME.search(value)
    if _NUMBERS.fullmatch(field):
        return re.fullmatch(_VALUE, value) is not None
    return _WORDS.fullmatch(value) is not None


def mib(value: str | None) -> int | None:
    """Return an amount of memory; 0 is how some boards spell "unknown"."""
    if value is None:
        return None
    digits = re.match(r"\d{1,12}", value)
    return (int(digits[0]) or None) if digits else None
