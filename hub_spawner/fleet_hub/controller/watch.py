"""Waiting for a change of one workload, without asking again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class Watch:
    """One reader's bell.  A change between ``clear`` and ``wait`` is never missed."""

    def __init__(self) -> None:
        """Begin silent."""
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Say that something changed."""
        self._event.set()

    def clear(self) -> None:
        """Forget what rang before; call it before looking."""
        self._event.clear()

    async def wait(self, timeout_seconds: float | None = None) -> bool:
        """Return True after a change, False after *timeout_seconds*."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return True


class Watchers:
    """All readers, by the workload that they read."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._watches: dict[str, set[Watch]] = {}

    @contextmanager
    def watch(self, workload: str) -> Iterator[Watch]:
        """Hear of every change of *workload* while in the block."""
        watch = Watch()
        self._watches.setdefault(workload, set()).add(watch)
        try:
            yield watch
        finally:
            remaining = self._watches[workload]
            remaining.discard(watch)
            if not remaining:
                del self._watches[workload]

    def watched(self) -> Iterable[str]:
        """Return the workloads that somebody reads."""
        return self._watches.keys()

    def notify(self, workloads: Iterable[str]) -> None:
        """Wake the readers of *workloads*."""
        for name in workloads:
            for watch in self._watches.get(name, ()):
                watch.ring()
