"""Reads the table that plain ``nvidia-smi`` draws for people.

It is no machine interface: it cuts names, and its columns move between versions.  A
table that is not read without doubt is not read at all.
"""

from __future__ import annotations

import re
from typing import Final

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.nvidia.devices import conclude, mig_facts, nvidia_device
from fleet_agent.probes.nvidia.fields import cell
from fleet_agent.probes.text import known, lines
from fleet_contracts.capabilities import AcceleratorDevice


# The driver and CUDA have had several labels, and the oldest tables show no CUDA.
_TITLE: Final = re.compile(
    r"\| NVIDIA-SMI \S+\s+(?:Driver|KMD) Version:\s*(?P<driver>\S+)"
    r"(?:\s+CUDA (?:UMD )?Version:\s*(?P<cuda>\S+))?\s*\|"
)
_FIRST: Final = re.compile(
    r"\|\s{1,4}(?P<index>\d{1,3})\s+(?P<name>\S.*?)\s+(?:On|Off|N/A|ERR!|WDDM|TCC|MCDM)\s*\|"
    r"\s*(?P<bus>\S+)\s+(?:On|Off|N/A|ERR!)\s*\|\s*\S+\s*\|"
)
_MEMORY: Final = re.compile(r"\|[^|]*\|\s*\S+\s*/\s*(?P<total>\d+)MiB\s*\|[^|]*\|")
_NO_MEMORY: Final = re.compile(r"\|[^|]*\|\s*(Not Supported|N/A)[^|]*\|[^|]*\|")
_MIG: Final = re.compile(r"\|\s*\|\s*\|\s*(?P<mig>\S+)\s*\|")
# Further tables of the same drawing: their rows are slices and processes, no cards.
_NEXT_TABLE: Final = re.compile(r"\|\s*(MIG devices|Processes|GPU topology)\b.*\|")
_ROW_LINES: Final = 2
_CUT: Final = "..."


def read_table_drawing(text: str) -> Answer | None:
    """Return the devices of a drawn table, or None when it cannot be trusted."""
    drawn = _first_table(lines(text))
    title = next((match for line in drawn if (match := _TITLE.fullmatch(line))), None)
    if title is None:
        return None
    driver = cell("driver_version", title["driver"])
    devices: list[AcceleratorDevice] = []
    missing = None
    for position, line in enumerate(drawn):
        first = _FIRST.fullmatch(line)
        if first is None:
            continue
        below = drawn[position + 1 : position + 1 + _ROW_LINES]
        found = _device(first, below, driver.value if driver else None)
        if found is None:
            return None
        devices.append(found)
        missing = missing or _missing(found, title["cuda"])
    if not devices or "ERR!" in text or _unread_rows(drawn, len(devices)):
        return None
    found_all = tuple(devices)
    return conclude(found_all, note=missing, facts=mig_facts(found_all))


def _first_table(drawn: list[str]) -> list[str]:
    ends = (at for at, line in enumerate(drawn) if _NEXT_TABLE.fullmatch(line))
    return drawn[: next(ends, len(drawn))]


def _device(
    first: re.Match[str], below: list[str], driver: str | None
) -> AcceleratorDevice | None:
    name = known(first["name"])
    memory = _MEMORY.fullmatch(below[0]) if below else None
    if name is None or _CUT in name:
        return None
    if memory is None and not (below and _NO_MEMORY.fullmatch(below[0])):
        return None
    mig = _MIG.fullmatch(below[1]) if len(below) == _ROW_LINES else None
    mig_enabled = None if mig is None else mig["mig"] == "Enabled"
    return nvidia_device(
        index=int(first["index"]),
        name=name,
        memory_mib=(int(memory["total"]) or None) if memory else None,
        driver_version=driver,
        healthy=True,
        execution_supported=None if mig_enabled else True,
        mig_enabled=mig_enabled,
    )


def _missing(device: AcceleratorDevice, cuda: str | None) -> str | None:
    if device.mig_enabled:
        return "mig_enabled"
    if device.memory_mib is None:
        driver = "driver_and_" if device.driver_version is None else ""
        return f"{driver}memory_not_reported"
    silent = cuda is not None and known(cuda) is None
    return "cuda_version_not_reported" if silent else None


def _unread_rows(drawn: list[str], read: int) -> bool:
    """Whether the table has more device rows than were understood."""
    rows = sum(
        1 for line in drawn if re.match(r"\|\s{1,4}\d{1,3}\s+\S.*\|.*\|.*\|$", line)
    )
    return rows != read
