"""Which device files does a workload need for the GPUs that it holds?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.native.sandbox import Access, Mount
from fleet_contracts.reasons import Reason


_SHARED_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_UUID = re.compile(r"^GPU UUID:\s*(\S+)", re.MULTILINE)
_MINOR = re.compile(r"^Device Minor:\s*(\d+)", re.MULTILINE)


def nvidia_mounts(
    uuids: Sequence[str],
    driver: Path = Path("/proc/driver/nvidia"),
    devices: Path = Path("/dev"),
) -> tuple[Mount, ...]:
    """Return the device files of exactly these GPUs, and what all of them share.

    Raises:
        DriverError: one of them is not there any more.
    """
    if not uuids:
        return ()
    minors = _minors(driver)
    missing = [uuid for uuid in uuids if uuid not in minors]
    if missing:
        raise DriverError(
            Reason.DEVICE_LOST,
            f"no such GPU: {', '.join(missing)}",
            detail="A GPU that was promised is not there any more. "
            "The machine may have lost it, or its GPU driver was replaced.",
        )
    names = [f"nvidia{minors[uuid]}" for uuid in sorted(uuids)]
    names += [name for name in _SHARED_NODES if (devices / name).exists()]
    return tuple(
        Mount(source=str(devices / name), target=f"/dev/{name}", access=Access.DEVICE)
        for name in names
    )


def _minors(driver: Path) -> dict[str, int]:
    minors = {}
    for path in driver.glob("gpus/*/information"):
        text = path.read_text()
        uuid, minor = _UUID.search(text), _MINOR.search(text)
        if uuid and minor:
            minors[uuid.group(1)] = int(minor.group(1))
    return minors
