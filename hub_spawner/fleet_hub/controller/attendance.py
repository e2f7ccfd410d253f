"""One start of the Hub, attended: what it is told until its outcome."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from fleet_contracts.allocations import State
from fleet_contracts.sentences import sentence
from fleet_hub.admission import Ask, Outcome, OutcomeKind, Update
from fleet_hub.controller import asking, stopping
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.core import Core
from fleet_hub.controller.discretion import events_of, explanation_of
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.records import Workload
from fleet_hub.controller.words import headline_of, position_of


_OUTCOMES = {
    State.READY: OutcomeKind.READY,
    State.REFUSED: OutcomeKind.REFUSED,
    State.FAILED: OutcomeKind.FAILED,
    State.STOPPED: OutcomeKind.STOPPED,
}


class Attendance:
    """A start that waits.  Closing it keeps the workload; only ``stop`` ends one."""

    def __init__(self, core: Core, request: Ask) -> None:
        """Attend *request*; nothing is asked before ``messages`` is read."""
        self._core = core
        self._request = request
        self._name: str | None = None
        self._parked = False

    def park(self) -> None:
        """The Hub lets go; a workload that already holds something is still attended."""
        if self._name is not None and stopping.park(self._core, self._name):
            self._parked = True
            self._core.watchers.notify([self._name])

    async def messages(self) -> AsyncGenerator[Update | Outcome, None]:
        """Yield what happens, and the outcome as the last."""
        await self._wait_for_an_earlier_end()
        try:
            record = self._ask()
        except RequestRefusedError as refusal:
            yield Outcome(
                kind=OutcomeKind.REFUSED,
                headline=sentence(refusal.explanation),
                explanation=refusal.explanation,
            )
            return
        try:
            async for message in self._follow(record):
                yield message
        finally:
            self._let_go(record.id)

    async def _wait_for_an_earlier_end(self) -> None:
        """A server that is being stopped is asked for again once it is over."""
        record = self._core.model.by_key(self._request.key)
        if record is None:
            return
        with self._core.watchers.watch(record.id) as watch:
            while record is not None and record.stop is not None:
                watch.clear()
                await watch.wait()
                record = self._core.model.by_key(self._request.key)

    def _ask(self) -> Workload:
        """Ask, and let the fleet decide at once: a free machine shows no waiting."""
        known = self._core.model.by_key(self._request.key)
        if known is not None:
            self._attend(known.id)
        try:
            record = asking.ask(self._core, self._request)
        except BaseException:
            if known is not None:
                self._let_go(known.id)
            raise
        if known is None:
            self._attend(record.id)
        self._name = record.id
        run_cycle(self._core)
        return self._core.model.workloads[record.id]

    def _attend(self, name: str) -> None:
        self._core.attended[name] = self._core.attended.get(name, 0) + 1

    def _let_go(self, name: str) -> None:
        left = self._core.attended.get(name, 0) - 1
        if left > 0:
            self._core.attended[name] = left
        else:
            self._core.attended.pop(name, None)

    async def _follow(self, record: Workload) -> AsyncGenerator[Update | Outcome, None]:
        name, generation, told = record.id, record.generation, 0
        sentence_told = ""
        with self._core.watchers.watch(name) as watch:
            while True:
                watch.clear()
                now = self._core.model.workloads.get(name)
                if now is None or now.generation != generation:
                    yield self._superseded(name)
                    return
                headline = headline_of(self._core, now)
                events = [
                    event
                    for event in events_of(self._core, name, after=told)
                    if event.generation == generation
                ]
                if not events and headline != sentence_told and told:
                    # The line moved: the last entry again, in new words.
                    events = list(events_of(self._core, name, after=told - 1))
                for event in events:
                    told = max(told, event.seq)
                    yield Update(
                        event=event,
                        headline=headline,
                        position=position_of(self._core, now),
                    )
                sentence_told = headline
                if outcome := self._outcome(now):
                    yield outcome
                    return
                await watch.wait()

    def _outcome(self, record: Workload) -> Outcome | None:
        kind = OutcomeKind.PARKED if self._parked else _OUTCOMES.get(record.state)
        if kind is None:
            return None
        headline = headline_of(self._core, record)
        why = explanation_of(self._core, record)
        if kind is OutcomeKind.REFUSED and why is not None:
            # One "no" in one sentence, also where the fleet came to it a moment later.
            headline = sentence(why)
        return Outcome(
            kind=kind,
            workload=record.id,
            url=record.url,
            headline=headline,
            explanation=why,
        )

    def _superseded(self, name: str) -> Outcome:
        return Outcome(
            kind=OutcomeKind.STOPPED,
            workload=name,
            headline="This start was replaced by a later one.",
        )
