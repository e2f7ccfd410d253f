"""The ledger's pages of one allocation: what is recorded is also told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import structlog

from fleet_agent.drivers.base import Handle
from fleet_agent.errors import LedgerWriteError
from fleet_agent.ledger import Ledger
from fleet_agent.ledger_entry import Key, StopIntent
from fleet_agent.progress import MOST_OPEN_REPORTS, SHORTEST_PAUSE, Throttle
from fleet_contracts.protocol import AgentEvent, Report
from fleet_contracts.timeline import Progress


Result = TypeVar("Result")
Publish = Callable[[Report], None]

_RETRY_SECONDS = 2.0

_log = structlog.stdlib.get_logger("fleet_agent.records")


class Records:
    """Writes about one allocation into the ledger, and publishes what was written."""

    def __init__(self, key: Key, *, ledger: Ledger, publish: Publish) -> None:
        """Write about *key*."""
        self.key = key
        self._ledger = ledger
        self._publish = publish
        self._throttle = Throttle()
        self._withheld: asyncio.TimerHandle | None = None

    @staticmethod
    def now() -> datetime:
        """Return the time as reports carry it."""
        return datetime.now(UTC)

    def keep_handle(self, handle: Handle) -> None:
        """Make *handle* durable.

        Raises:
            LedgerWriteError: it could not be; the driver must not go on.
        """
        self._ledger.keep_handle(self.key, handle)

    async def drop_handle(self) -> None:
        """Record that nothing is left to undo, as soon as the ledger can be written."""
        await self._insist(lambda: self._ledger.keep_handle(self.key, None))

    async def report(self, event: AgentEvent, **facts: Any) -> None:
        """Record and publish *event*, as soon as the ledger can be written."""
        report = await self._insist(
            lambda: self._ledger.report(self.key, event, at=self.now(), **facts)
        )
        self._publish(report)
        _log.info(
            "allocation changed",
            allocation=self.key.allocation,
            epoch=self.key.epoch,
            change=event.value,
            reason=report.explanation and report.explanation.reason.value,
        )

    def stopping(self, intent: StopIntent) -> None:
        """Record and publish the decision to stop; a full disk does not prevent it."""
        try:
            report = self._ledger.ask_stop(self.key, intent, at=self.now())
        except LedgerWriteError as error:
            _log.error("a stop could not be recorded", error=str(error))
            return
        if report is not None:
            self._publish(report)

    def progress(self, progress: Progress) -> None:
        """Tell of *progress*, unless nobody has listened.

        One that comes too soon is told later, if nothing newer came by then: whoever
        stops half way must not seem to stand at the beginning.
        """
        loop = asyncio.get_running_loop()
        self.forget_progress()
        if not self._throttle.passes(progress, now=loop.time()):
            due = self._throttle.told_at + SHORTEST_PAUSE
            self._withheld = loop.call_at(due, self.progress, progress)
            return
        if self._ledger.count_unacknowledged(self.key) >= MOST_OPEN_REPORTS:
            return
        try:
            report = self._ledger.report(
                self.key, AgentEvent.PROGRESS, at=self.now(), progress=progress
            )
        except LedgerWriteError as error:
            _log.warning("progress could not be recorded", error=str(error))
            return
        self._publish(report)

    def forget_progress(self) -> None:
        """Drop what is still to be told: something newer is, or the step is over."""
        if self._withheld is not None:
            self._withheld.cancel()
            self._withheld = None

    async def _insist(self, write: Callable[[], Result]) -> Result:
        """Return the result of *write*, tried until the ledger can be written."""
        while True:
            try:
                return write()
            except LedgerWriteError as error:
                _log.error("the ledger cannot be written", error=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
