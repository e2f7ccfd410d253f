"""A turn that came while nobody attended: the Hub is asked to start the server.

The place is held meanwhile, so each answer of the Hub has to lead somewhere: to the
Spawner's own ask, to another try, or to giving the place back.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from fleet_contracts.allocations import Event
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller import lifecycle
from fleet_hub.controller.core import Core
from fleet_hub.controller.ports import StartAnswer, StartResult
from fleet_hub.controller.records import Workload


log = structlog.get_logger()

_RETRY_SECONDS: Final = {
    StartAnswer.LATER: 2.0,
    StartAnswer.REFUSED: 10.0,
    StartAnswer.FORBIDDEN: 30.0,
    StartAnswer.UNREACHABLE: 2.0,
}
_COMING: Final = frozenset({StartAnswer.STARTED, StartAnswer.UNDER_WAY})


class Claims:
    """Asks the Hub for the starts that are due; one request per workload at a time."""

    def __init__(self, core: Core) -> None:
        """Ask on behalf of *core*."""
        self._core = core
        self._running: dict[str, asyncio.Task[None]] = {}
        self._next_try: dict[str, datetime] = {}

    def due(self) -> list[Workload]:
        """Return the workloads whose turn has come and that nobody attends."""
        now = self._core.clock.now()
        return [
            record
            for record in self._core.model.turns_to_claim()
            if record.id not in self._running
            and not self._core.is_attended(record.id)
            and self._next_try.get(record.id, now) <= now
        ]

    def ask_hub(self) -> None:
        """Send the requests that are due, without waiting for their answers."""
        for record in self.due():
            task = asyncio.create_task(self._request(record))
            self._running[record.id] = task

    async def _request(self, record: Workload) -> None:
        try:
            result = await self._core.hub.start_server(
                record.principal.name, record.server_name
            )
            self.answered(record.id, result)
        finally:
            self._running.pop(record.id, None)

    def answered(self, name: str, result: StartResult) -> None:
        """Act on the Hub's answer about workload *name*."""
        record = self._core.model.workloads.get(name)
        if record is None or not _is_unclaimed(record):
            self._next_try.pop(name, None)
            return
        log.info("start asked of the hub", workload=name, answer=result.answer.value)
        now = self._core.clock.now()
        if result.answer is StartAnswer.GONE:
            self._give_back(record, Reason.RETIRED)
            return
        wait = result.retry_after_seconds or _RETRY_SECONDS.get(result.answer, 30.0)
        self._next_try[name] = now + timedelta(seconds=wait)
        # The window runs once the Hub can be expected to come: while it is away
        # nobody is late.
        if result.answer in _COMING | {StartAnswer.REFUSED}:
            self._run_window(record, now)

    def _run_window(self, record: Workload, now: datetime) -> None:
        assignment = record.assignment
        if assignment is None or assignment.claim_by is not None:
            return
        window = timedelta(seconds=self._core.settings.claim_seconds)
        with self._core.transaction() as tx:
            claimed = replace(assignment, claim_by=now + window)
            tx.put(replace(record, assignment=claimed))

    def _give_back(self, record: Workload, reason: Reason) -> None:
        self._next_try.pop(record.id, None)
        with self._core.transaction() as tx:
            stopping = tx.advance(record, Event.STOP_ASKED)
            lifecycle.finish(
                self._core,
                tx,
                stopping,
                Event.ENDED,
                actor="hub",
                explanation=Explanation(reason=reason),
            )

    async def close(self) -> None:
        """Drop requests that are under way: the next process asks again."""
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)


def _is_unclaimed(record: Workload) -> bool:
    assignment = record.assignment
    return assignment is not None and not assignment.launched
