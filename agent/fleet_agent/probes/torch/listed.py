"""The devices that torch lists, where they say more than the hardware's own tool.

Through torch an AMD card looks like CUDA (``major=9, minor=0``), so the kind follows
the build.  CUDA devices are left to nvidia-smi: a listing by torch follows the
visibility variables, its own order, and is never complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fleet_agent.probes.text import known
from fleet_contracts.capabilities import AcceleratorDevice, DeviceKind


_TARGET: Final = re.compile(r"gfx(?:[6-9]|1[0-9])[0-9a-f]{2}")


def rocm_devices(
    listed: Iterable[Mapping[str, Any]],
) -> tuple[AcceleratorDevice, ...]:
    """Return the AMD devices of a listing: detection only."""
    found = []
    for index, item in enumerate(listed):
        told = str(item.get("gcnArchName") or item.get("architecture") or "")
        target = told.split(":", 1)[0]
        if not target.startswith("gfx"):
            continue
        found.append(
            AcceleratorDevice(
                accelerator=DeviceKind.ROCM,
                vendor="amd",
                index=index,
                name=known(item.get("name")),
                memory_mib=_memory(item.get("total_memory") or item.get("memory_mib")),
                architecture=target if _TARGET.fullmatch(target) else None,
                execution_supported=False,
            )
        )
    return tuple(found)


def _memory(value: object) -> int | None:
    match = re.fullmatch(r"(\d{1,9})(MB|MiB)?", str(value))
    return (int(match[1]) or None) if match else None
