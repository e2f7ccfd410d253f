"""What ends by itself when this machine was cut off for too long.

Only workloads whose class asks for it: being cut off ends nothing else.  Since when the
machine is cut off is written down, so that a restart of the agent does not begin anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from time import time

import structlog

from fleet_agent.ledger_entry import Entry, Key


_log = structlog.stdlib.get_logger("fleet_agent.leases")


class Leases:
    """Watches how long nobody was heard, and ends what must not go on then."""

    def __init__(
        self,
        *,
        path: Path | None,
        entries: Callable[[], Iterable[Entry]],
        end: Callable[[Key], None],
        clock: Callable[[], float] = time,
    ) -> None:
        """Remember at *path*; *end* is told what has to; *clock* is the machine's."""
        self._path = path
        self._entries = entries
        self._end = end
        self._clock = clock
        self._changed = asyncio.Event()
        self._told: set[Key] = set()
        # Until somebody is heard, this machine is cut off.
        self._since: float | None = self._read()
        if self._since is None:
            self._begin()

    def heard(self) -> None:
        """The controller is there."""
        self._since = None
        self._told.clear()
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
        self._changed.set()

    def lost(self) -> None:
        """The controller is not heard any more."""
        if self._since is None:
            self._begin()
        self._changed.set()

    async def run(self) -> None:
        """End what is due, until cancelled."""
        while True:
            self._changed.clear()
            due = self._next()
            left = None if due is None else max(0.0, due - self._clock())
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()
                    continue
            for key in self._overdue():
                _log.warning("cut off for longer than its class allows", key=key)
                self._told.add(key)
                self._end(key)

    def _begin(self) -> None:
        self._since = self._clock()
        if self._path is not None:
            # Without it the next agent begins to count when it starts.
            with suppress(OSError):
                self._path.write_text(repr(self._since))

    def _read(self) -> float | None:
        if self._path is None:
            return None
        try:
            since = float(self._path.read_text())
        except (OSError, ValueError):
            return None
        # A clock that was set back must not make it longer.
        return since if since <= self._clock() else None

    def _dues(self) -> list[tuple[float, Key]]:
        if self._since is None:
            return []
        return [
            (self._since + entry.spec.lease_seconds, entry.key)
            for entry in self._entries()
            if entry.holds
            and entry.key not in self._told
            and entry.spec is not None
            and entry.spec.lease_seconds is not None
        ]

    def _next(self) -> float | None:
        return min((due for due, _ in self._dues()), default=None)

    def _overdue(self) -> list[Key]:
        now = self._clock()
        return [key for due, key in self._dues() if due <= now]
