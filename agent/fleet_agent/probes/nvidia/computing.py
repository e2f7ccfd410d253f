"""Which cards do programs compute on, and what have those taken of them?

nvidia-smi's list of processes is asked without names, numbers and users: nobody needs
them.  It leaves out what only draws, and what it may not see: in a container, say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fleet_agent.probes.faults import process_fault
from fleet_agent.probes.nvidia.fields import cell
from fleet_agent.probes.text import lines
from fleet_agent.probes.tools import ToolResult
from fleet_contracts.capabilities import DeviceUsage


QUERY: Final = ("--query-compute-apps=gpu_uuid,used_memory", "--format=csv,noheader")
_COLUMNS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Computing:
    """The programs on one card."""

    processes: int = 0
    memory_mib: int | None = 0
    """None: of some of them nobody knows."""


def read_computing(result: ToolResult) -> dict[str, Computing] | None:
    """Return who computes on which card, by UUID; None: the tool did not say.

    A card that is not named has nobody that the tool could see.
    """
    if process_fault(result) is not None or result.exit_code != 0:
        return None
    found: dict[str, Computing] = {}
    for line in lines(result.stdout):
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != _COLUMNS:
            if "no running" in line.lower():
                continue
            return None
        uuid, memory = cell("uuid", parts[0]), cell("memory.used", parts[1])
        if uuid is None or uuid.value is None:
            return None
        known = found.get(uuid.value, Computing())
        found[uuid.value] = Computing(
            processes=known.processes + 1,
            memory_mib=_sum(known.memory_mib, memory.value if memory else None),
        )
    return found


def with_computing(
    busy: DeviceUsage, computing: Mapping[str, Computing] | None
) -> DeviceUsage:
    """Return *busy* with who computes on it, as far as that is known."""
    if computing is None or busy.uuid is None:
        return busy
    here = computing.get(busy.uuid, Computing())
    return busy.model_copy(
        update={
            "compute_processes": here.processes,
            "compute_memory_mib": here.memory_mib,
        }
    )


def _sum(known: int | None, more: str | None) -> int | None:
    digits = (more or "").split()[:1]
    if known is None or not digits or not digits[0].isdecimal():
        return None
    return known + int(digits[0])
