"""How do several callers share one piece of work?

The first caller begins it, others join it, and it ends early only when nobody is left
who waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from fleet_agent.drivers.base import ProgressSink
from fleet_contracts.timeline import Progress


Result = TypeVar("Result")


class _Effort(Generic[Result]):
    """One piece of work with the people who wait for it."""

    def __init__(self) -> None:
        self.sinks: list[ProgressSink] = []
        self.told: Progress | None = None
        self.task: asyncio.Task[Result] | None = None

    def tell(self, progress: Progress) -> None:
        self.told = progress
        for sink in self.sinks:
            sink(progress)


class SharedWork(Generic[Result]):
    """Runs at most one effort per key at a time."""

    def __init__(self) -> None:
        self._efforts: dict[str, _Effort[Result]] = {}

    async def join(
        self,
        key: str,
        work: Callable[[ProgressSink], Awaitable[Result]],
        progress: ProgressSink,
    ) -> Result:
        """Return the result of *key*'s work, begun with *work* if nobody did yet.

        *progress* hears what is told from now on, and the last thing told before.
        When the last caller is cancelled the work is cancelled, and has ended when
        that caller's ``CancelledError`` arrives.
        """
        effort = self._efforts.get(key)
        if effort is None:
            effort = self._begin(key, work)
        assert effort.task is not None  # noqa: S101 - set by _begin
        effort.sinks.append(progress)
        if effort.told is not None:
            progress(effort.told)
        try:
            return await asyncio.shield(effort.task)
        finally:
            effort.sinks.remove(progress)
            if not effort.sinks and not effort.task.done():
                # Nobody may join what is being given up.
                self._drop(key, effort)
                effort.task.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.shield(asyncio.wait([effort.task]))

    def _begin(
        self, key: str, work: Callable[[ProgressSink], Awaitable[Result]]
    ) -> _Effort[Result]:
        effort: _Effort[Result] = _Effort()

        async def run() -> Result:
            return await work(effort.tell)

        effort.task = asyncio.create_task(run())
        effort.task.add_done_callback(lambda task: self._end(key, effort, task))
        self._efforts[key] = effort
        return effort

    def _end(
        self, key: str, effort: _Effort[Result], task: asyncio.Task[Result]
    ) -> None:
        self._drop(key, effort)
        if not task.cancelled():
            # Retrieved here as well: a failure may meet the last caller's cancellation.
            task.exception()

    def _drop(self, key: str, effort: _Effort[Result]) -> None:
        if self._efforts.get(key) is effort:
            del self._efforts[key]
