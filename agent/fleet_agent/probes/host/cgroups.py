"""How much of the machine a container or a service may use.

A limit anywhere above a process binds it, so every level up to the root of what is
mounted counts.  Tools such as nproc and psutil see the whole machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final


Read = Callable[[str], str | None]
"""Returns a small file's text, or None when it cannot be read."""

# Version 1 spells "no limit" as the largest number of pages.
_NO_LIMIT: Final = 1 << 60
_UNIFIED: Final = "cgroup2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One mounted hierarchy."""

    kind: str
    root: str
    point: str
    controllers: frozenset[str]


def files(read: Read) -> dict[str, str]:
    """Return the text of every limit that binds this process, by path."""
    mounts = parse_mounts(read("/proc/self/mountinfo") or "")
    paths = parse_membership(read("/proc/self/cgroup") or "")
    found: dict[str, str] = {}
    for folder, names in _folders(mounts, paths):
        for name in names:
            text = read(f"{folder}/{name}")
            if text is not None:
                found[f"{folder}/{name}"] = text.strip()[:80]
    return found


def parse_mounts(mountinfo: str) -> tuple[Mount, ...]:
    """Return the cgroup hierarchies in ``/proc/self/mountinfo``."""
    mounts = []
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if not separator or len(fields) < 5 or len(kind) < 3:  # noqa: PLR2004 - proc(5)
            continue
        if kind[0] in (_UNIFIED, "cgroup"):
            mounts.append(
                Mount(
                    kind=kind[0],
                    root=fields[3],
                    point=fields[4],
                    controllers=frozenset(kind[2].split(",")),
                )
            )
    return tuple(mounts)


def parse_membership(text: str) -> dict[str, str]:
    """Return this process's path by controller; the unified hierarchy's is ``""``."""
    paths: dict[str, str] = {}
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:  # noqa: PLR2004 - number, controllers, path
            for controller in parts[1].split(","):
                paths[controller] = parts[2]
    return paths


_V1_FILES: Final = {
    "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us"),
    "memory": ("memory.limit_in_bytes",),
}


def _folders(
    mounts: Iterable[Mount], paths: dict[str, str]
) -> Iterable[tuple[str, tuple[str, ...]]]:
    for mount in mounts:
        if mount.kind == _UNIFIED:
            for folder in _upwards(mount, paths.get("", "/")):
                yield folder, ("cpu.max", "memory.max")
            continue
        for controller, names in _V1_FILES.items():
            if controller in mount.controllers:
                for folder in _upwards(mount, paths.get(controller, "/")):
                    yield folder, names


def _upwards(mount: Mount, path: str) -> Iterable[str]:
    inside = path.removeprefix(mount.root.rstrip("/")) if path != "/" else ""
    # A path that climbs out of the namespace is not visible here.
    parts = [part for part in inside.split("/") if part and part != ".."]
    for depth in range(len(parts), -1, -1):
        yield "/".join([mount.point, *parts[:depth]])


def cpu_quota_milli(found: dict[str, str]) -> int | None:
    """Return the tightest quota in thousandths of a core, or None for no quota."""
    quotas = [
        _v2_quota(text) for path, text in found.items() if path.endswith("cpu.max")
    ]
    for path, text in found.items():
        if path.endswith("cpu.cfs_quota_us"):
            period = found.get(path.replace("cfs_quota_us", "cfs_period_us"), "")
            quotas.append(_ratio(text, period))
    known = [quota for quota in quotas if quota is not None]
    return min(known, default=None)


def _v2_quota(text: str) -> int | None:
    parts = text.split()
    return _ratio(parts[0], parts[1] if len(parts) > 1 else "100000") if parts else None


def _ratio(quota: str, period: str) -> int | None:
    if not re.fullmatch(r"\d{1,18}", quota) or not re.fullmatch(r"\d{1,18}", period):
        return None
    if int(period) == 0 or int(quota) == 0:
        return None
    return max(1, int(quota) * 1000 // int(period))


def memory_limit_bytes(found: dict[str, str]) -> int | None:
    """Return the tightest memory limit, or None for no limit."""
    limits = [
        int(text)
        for path, text in found.items()
        if path.endswith(("memory.max", "memory.limit_in_bytes"))
        and re.fullmatch(r"\d{1,19}", text)
    ]
    return min((limit for limit in limits if 0 < limit < _NO_LIMIT), default=None)
