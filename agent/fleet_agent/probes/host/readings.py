"""Reads the raw facts of this computer, without judging them.

The readings are plain JSON, so that a recording of them is judged on any machine as
they would be here.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psutil

from fleet_agent.probes.host.cgroups import files


_SMALL: Final = 64 * 1024
_GPU_FILE: Final = re.compile(r"nvidia\d+|kfd")
_CONTAINER_SIGNS: Final = ("/.dockerenv", "/run/.containerenv")


def read_file(path: str) -> str | None:
    """Return the beginning of a small file, or None when it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(_SMALL).decode("utf-8", errors="replace")
    except OSError:
        return None


def read_host(state_dir: str) -> dict[str, Any]:
    """Return the readings; a part that cannot be read is None."""
    return {
        "platform": sys.platform,
        "machine": platform.machine(),
        "release": platform.release(),
        "kernel_version": platform.version(),
        "mac_version": platform.mac_ver()[0] or None,
        "python": platform.python_version(),
        "os_release": read_file("/etc/os-release"),
        "cpuinfo": _first_processor(read_file("/proc/cpuinfo")),
        "virtual_sign": read_file("/sys/class/dmi/id/sys_vendor"),
        "product_sign": read_file("/sys/class/dmi/id/product_name"),
        "container_signs": [path for path in _CONTAINER_SIGNS if _exists(path)],
        "cgroup_files": _try(lambda: files(read_file)) or {},
        "cores_physical": _try(lambda: psutil.cpu_count(logical=False)),
        "cores_logical": _try(lambda: psutil.cpu_count(logical=True)),
        "cores_visible": _affinity(),
        "memory_bytes": _try(lambda: int(psutil.virtual_memory().total)),
        "disk": _try(lambda: _disk(state_dir)),
        "gpu_driver_cards": _cards(),
        "gpu_device_files": _device_files(),
    }


def read_usage() -> dict[str, Any]:
    """Return how busy the computer is now."""
    return {
        "memory_available_bytes": _try(lambda: int(psutil.virtual_memory().available)),
        "load": _try(lambda: os.getloadavg()[0]),
    }


def _try(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (OSError, psutil.Error, ValueError, AttributeError, RuntimeError):
        return None


def _exists(path: str) -> bool:
    return _try(lambda: Path(path).exists()) is True


def _first_processor(cpuinfo: str | None) -> str | None:
    return cpuinfo.split("\n\n", 1)[0] if cpuinfo else None


def _affinity() -> int | None:
    if not hasattr(os, "sched_getaffinity"):
        return None
    return _try(lambda: len(os.sched_getaffinity(0)))  # type: ignore[no-any-return]


def _disk(state_dir: str) -> dict[str, int]:
    folder = Path(state_dir)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    return {"total": usage.total, "free": usage.free}


def _cards() -> list[str]:
    """Return the PCI ids that the kernel's NVIDIA driver lists."""
    found = _try(lambda: sorted(os.listdir("/proc/driver/nvidia/gpus")))  # noqa: PTH208 - names only
    return found or []


def _device_files() -> list[str]:
    """Return the files by which the kernel offers NVIDIA and AMD cards."""
    found = _try(lambda: sorted(filter(_GPU_FILE.fullmatch, os.listdir("/dev"))))  # noqa: PTH208 - names only
    return found or []
