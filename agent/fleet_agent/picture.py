"""The machine's picture of itself: first facts at once, the whole picture when it is in.

Detection may take seconds, and a broken tool longer.  Registration does not wait for
it: what is not known yet is unknown, and a change is sent as it comes.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import structlog

from fleet_contracts.capabilities import (
    AgentDriver,
    Fact,
    HostFacts,
    Observed,
    WorkerCapabilities,
)
from fleet_contracts.workloads import DriverName


Detect = Callable[[], Awaitable[WorkerCapabilities]]
Value = TypeVar("Value")

_UNSTEADY = frozenset(
    {"observed", "observed_at", "sources", "detected_at", "usage", "disk_free_bytes"}
)
"""What differs from one look to the next without anything having changed."""

_log = structlog.stdlib.get_logger("fleet_agent.picture")


def first_picture(*, drivers: Iterable[DriverName], folder: Path) -> WorkerCapabilities:
    """Return what can be known without running anything; the rest is unknown."""
    now = datetime.now(UTC)

    def fact(value: Value | None, source: str) -> Fact[Value]:
        return Fact(value=value, observed=Observed(source=source, observed_at=now))

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    cores = cores or os.cpu_count()
    return WorkerCapabilities(
        detected_at=now,
        host=HostFacts(
            os=fact(sys.platform, "python"),
            process_architecture=fact(platform.machine() or None, "uname"),
            cores_logical=fact(os.cpu_count(), "python"),
            cores_allowed_milli=fact(cores and cores * 1000, "affinity"),
            memory_allowed_bytes=fact(_memory_bytes(), "sysconf"),
            disk_free_bytes=fact(_free_bytes(folder), "statvfs"),
            python=fact(platform.python_version(), "python"),
        ),
        drivers=tuple(
            AgentDriver(
                name=name,
                usable=True,
                observed=Observed(source="agent", observed_at=now),
            )
            for name in drivers
        ),
    )


class Picture:
    """The latest picture, kept up to date."""

    def __init__(
        self,
        first: WorkerCapabilities,
        *,
        detect: Detect,
        on_change: Callable[[WorkerCapabilities], None],
        period_seconds: float,
    ) -> None:
        """Begin with *first*; *on_change* hears of every picture that differs."""
        self.latest = first
        self._detect = detect
        self._on_change = on_change
        self._period_seconds = period_seconds
        self._wanted = asyncio.Event()

    def look_again(self) -> None:
        """Detect now, not only when it is time."""
        self._wanted.set()

    async def run(self) -> None:
        """Detect at once, then periodically and on demand, until cancelled."""
        while True:
            self._wanted.clear()
            await self._look()
            try:
                async with asyncio.timeout(self._period_seconds):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    async def _look(self) -> None:
        try:
            seen = await self._detect()
        except Exception as error:  # noqa: BLE001 - a broken probe must not end the agent
            _log.error("detection failed", exc_info=error)
            return
        changed = _steady(seen) != _steady(self.latest)
        self.latest = seen
        if changed:
            _log.info("capabilities changed")
            self._on_change(seen)


def _steady(picture: WorkerCapabilities) -> Any:
    return _without_unsteady(picture.model_dump(mode="json"))


def _without_unsteady(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_unsteady(part)
            for name, part in value.items()
            if name not in _UNSTEADY
        }
    if isinstance(value, list):
        return [_without_unsteady(part) for part in value]
    return value


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
