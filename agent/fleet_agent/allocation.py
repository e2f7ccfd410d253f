"""The life of one allocation on this machine, from acceptance to its confirmed end.

Theory of operation
-------------------
One task at a time per allocation.  It works (prepare, start, wait) until the work is
over or somebody interrupts it; then it undoes what the last handle names, and only
then reports the end.  An end that a driver or a full disk refuses is tried again
until it is true: nothing is given up because it failed once.

When the agent itself goes, ``leave`` lets a serving workload run on, and undoes what
was only half started: nobody would own it.  The next agent resumes the first, and is
sent the launch of the second again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine

import structlog

from fleet_agent.copying.copies import Copies
from fleet_agent.drivers.base import (
    Condition,
    Driver,
    DriverError,
    Handle,
    Job,
    NotNowError,
    Standing,
)
from fleet_agent.ledger_entry import Entry, StopIntent
from fleet_agent.outcomes import Outcome, judge_end
from fleet_agent.records import Records
from fleet_agent.steps import stop_gently, within
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import WorkloadSpec


_RETRY_SECONDS = 2.0
_LEAVE_SECONDS = 5.0

_log = structlog.stdlib.get_logger("fleet_agent.allocation")


class Allocation:
    """Carries one allocation; at most one of its public verbs is under way."""

    def __init__(
        self,
        entry: Entry,
        *,
        spec: WorkloadSpec,
        driver: Driver,
        records: Records,
        ready: Callable[[], Awaitable[None]],
        verify: Callable[[WorkloadSpec], Awaitable[None]],
        copies: Copies,
        on_fault: Callable[[BaseException], None],
    ) -> None:
        """Begin where *entry* says that the allocation is; *spec* has no secrets.

        *ready* returns once the driver is ready; *verify* raises when what was prepared cannot do what its runtime requires.  *copies* fetches files to begin with.  *on_fault* hears of what ended the task and is no fault of the workload.
        """
        self.key = entry.key
        self.judged = asyncio.Event()
        """Set once it is known what is left of it after a restart."""
        self._spec = spec
        self._driver = driver
        self._records = records
        self._ready = ready
        self._verify = verify
        self._copies = copies
        self._on_fault = on_fault
        self._handle = entry.handle
        self._serving = entry.event is AgentEvent.SERVING
        self._ends_at = entry.ends_at
        self._stop = entry.stop
        self._leaving = False
        self._undoing = False
        self._starting = False
        self._job: Job | None = None
        self._interrupted = asyncio.Event()
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_active(self) -> bool:
        """Whether something is being done about it now."""
        return self._task is not None and not self._task.done()

    def launch(self, job: Job) -> None:
        """Prepare and start *job*, and stay with it; a repeated launch does nothing.

        A launch that comes with another environment, because the Hub began anew,
        takes the place of the earlier one as long as the server does not answer.
        """
        if self._serving:
            return
        if not self._starting:
            self._job = job
            if not self.is_active:
                self._begin(self._carry_out())
        elif self._job != job:
            # What is being started has a token that is void already.
            self._job = job
            self._interrupted.set()

    def resume(self) -> None:
        """Take up after a restart of the agent what the ledger says was there."""
        if self._stop is not None:
            self.judged.set()
            self._begin(self._nothing())
        else:
            self._begin(self._take_up())

    def ask_stop(self, intent: StopIntent) -> None:
        """End it; asking again with ``now`` does not wait for the server any longer."""
        self._decide_stop(intent)
        if not self.is_active:
            self._begin(self._nothing())

    async def leave(self) -> None:
        """Let go of it because the agent ends."""
        self._leaving = True
        self._interrupted.set()
        if self._task is None:
            return
        if not self._undoing:
            await asyncio.wait({self._task}, timeout=_LEAVE_SECONDS)
        # What is left of it is in the ledger, for the next agent to take up.
        self._task.cancel()
        await asyncio.wait({self._task})

    async def ended(self) -> None:
        """Return when nothing more is being done about it."""
        if self._task is not None:
            await asyncio.wait({self._task})

    # ---------------------------------------------------------------- the one task

    def _begin(self, work: Coroutine[None, None, Outcome | None]) -> None:
        name = f"allocation {self.key.allocation} epoch {self.key.epoch}"
        self._task = asyncio.create_task(self._live(work), name=name)
        self._task.add_done_callback(self._look_at)

    def _look_at(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._on_fault(error)

    async def _live(self, work: Coroutine[None, None, Outcome | None]) -> None:
        outcome = await self._until_interrupted(work)
        if self._stop is not None:
            outcome = Outcome(
                event=AgentEvent.ENDED, explanation=self._stop.explanation
            )
        elif self._leaving and self._serving:
            return
        self._undoing = True
        await self._undo()
        self._undoing = False
        if outcome is not None:
            await self._discard_copy()
            await self._records.report(outcome.event, explanation=outcome.explanation)
            return
        await self._records.drop_handle()
        if self._job is not None and self._stop is None and not self._leaving:
            self._interrupted.clear()
            self._begin(self._carry_out())

    async def _until_interrupted(
        self, work: Coroutine[None, None, Outcome | None]
    ) -> Outcome | None:
        """Return the outcome of *work*; None when it was cut short."""
        working = asyncio.create_task(work)
        interrupted = asyncio.create_task(self._interrupted.wait())
        try:
            await asyncio.wait({working, interrupted}, return_when="FIRST_COMPLETED")
        finally:
            interrupted.cancel()
            working.cancel()
        await asyncio.wait({working})
        return None if working.cancelled() else working.result()

    async def _nothing(self) -> None:
        """Do no work: there is only something to undo."""

    # ------------------------------------------------------------------- the work

    async def _carry_out(self) -> Outcome | None:
        if self._handle is not None:
            # Left by an agent that was killed half-way.
            await self._undo()
            await self._records.drop_handle()
        outcome = await self._make_ready()
        if outcome is not None:
            return outcome
        await self._records.report(AgentEvent.PREPARED)
        self._starting = True
        try:
            outcome = await within(
                self._spec.start_seconds,
                self._start(),
                too_late=Reason.START_TIMEOUT,
                went_wrong=Reason.START_FAILED,
                on_fault=self._log_driver_fault,
            )
        finally:
            self._starting = False
        if outcome is not None or self._interrupted.is_set():
            return outcome
        await self._begin_serving()
        return await self._serve()

    async def _make_ready(self) -> Outcome | None:
        """Prepare the runtime and then fetch the files; one limit is for both."""
        clock = asyncio.get_running_loop().time
        limit, began = self._spec.prepare_seconds, clock()
        outcome = await within(
            limit,
            self._prepare(),
            too_late=Reason.PREPARE_TIMEOUT,
            went_wrong=Reason.PREPARE_FAILED,
            on_fault=self._log_driver_fault,
        )
        if outcome is not None or self._spec.copy_order is None:
            return outcome
        return await within(
            max(limit - (clock() - began), 0.0),
            self._fetch_copy(),
            too_late=Reason.COPY_TIMEOUT,
            went_wrong=Reason.COPY_FAILED,
            on_fault=self._log_driver_fault,
        )

    async def _fetch_copy(self) -> None:
        async def note(explanation: Explanation) -> None:
            await self._records.report(AgentEvent.NOTE, explanation=explanation)

        await self._copies.fetch(
            self.key, self._spec, self._driver, self._records.progress, note
        )

    async def _hand_over_copy(self) -> None:
        """Before anybody is told: what a server was seen to use is never removed."""
        while True:
            try:
                return await self._copies.hand_over(self._spec, self._driver)
            except OSError as error:
                self._log_fault("a copy could not be handed over", error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _discard_copy(self) -> None:
        """Remove a copy that no server has used; the next agent does what fails."""
        try:
            await self._copies.discard(self._spec, self._driver)
        except (OSError, DriverError) as error:
            self._log_fault("an unused copy could not be removed", error)

    async def _prepare(self) -> None:
        assert self._job is not None  # noqa: S101 - by launch
        await self._ready()
        try:
            await self._driver.prepare(self._job, self._records.progress)
        finally:
            self._records.forget_progress()
        await self._verify(self._spec)

    async def _start(self) -> None:
        assert self._job is not None  # noqa: S101 - by launch
        handles = self._driver.start(self._job, self._records.progress)
        try:
            async for handle in handles:
                # In memory first: what cannot be made durable is still undone.
                self._handle = handle
                self._records.keep_handle(handle)
        finally:
            close = getattr(handles, "aclose", None)
            if close is not None:
                await close()
            self._records.forget_progress()
        if self._handle is None or self._handle.url is None:
            raise DriverError(Reason.START_FAILED, "the driver yielded no address")

    async def _take_up(self) -> Outcome | None:
        """Go on with what was serving; give up what was only half started."""
        handle = self._handle
        if handle is None or (handle.url is None and not self._serving):
            self.judged.set()
            return None
        condition = await self._judge(handle)
        self.judged.set()
        if self._serving:
            if condition.standing is Standing.GONE:
                return judge_end(condition)
            return await self._serve()
        if condition.standing is not Standing.RUNNING:
            return None
        await self._begin_serving()
        return await self._serve()

    async def _judge(self, handle: Handle) -> Condition:
        while True:
            try:
                return await self._driver.recover(handle)
            except Exception as error:  # noqa: BLE001 - unknown is not gone: ask again
                self._log_fault("a workload could not be judged", error)
                self.judged.set()
                await asyncio.sleep(_RETRY_SECONDS)

    async def _begin_serving(self) -> None:
        assert self._handle is not None  # noqa: S101 - by _start and _take_up
        limit = self._spec.limit_seconds
        if limit is not None:
            self._ends_at = self._records.now().timestamp() + limit
        await self._hand_over_copy()
        self._serving = True
        # The environment's secrets are not kept for as long as the server runs.
        self._job = None
        await self._records.report(
            AgentEvent.SERVING, url=self._handle.url, ends_at=self._ends_at
        )

    async def _serve(self) -> Outcome | None:
        """Stay with the server until it is gone or its time is over."""
        assert self._handle is not None  # noqa: S101 - by _start and _take_up
        limit = asyncio.timeout(self._seconds_left())
        try:
            async with limit:
                return judge_end(await self._wait(self._handle))
        except TimeoutError:
            if not limit.expired():
                raise
        self._decide_stop(StopIntent(explanation=Explanation(reason=Reason.TIME_LIMIT)))
        return None

    async def _wait(self, handle: Handle) -> Condition:
        while True:
            try:
                return await self._driver.wait(handle)
            except Exception as error:  # noqa: BLE001 - unknown is not gone: wait again
                self._log_fault("a workload could not be waited for", error)
                await asyncio.sleep(_RETRY_SECONDS)

    def _seconds_left(self) -> float | None:
        limit = self._spec.limit_seconds
        if limit is None or self._ends_at is None:
            return None
        # A clock that was set back must not make the limit longer.
        left = self._ends_at - self._records.now().timestamp()
        return min(max(left, 0.0), limit)

    # -------------------------------------------------------------------- the end

    def _decide_stop(self, intent: StopIntent) -> None:
        self._records.stopping(intent)
        if self._stop is None:
            self._stop = intent
        if intent.now:
            self._hurry.set()
        self._interrupted.set()

    async def _undo(self) -> None:
        """Undo what the last handle names, tried until the driver says it is gone."""
        while self._handle is not None:
            try:
                await stop_gently(
                    self._driver,
                    self._handle,
                    grace_seconds=self._grace_seconds(),
                    hurry=self._hurry,
                )
            except Exception as error:  # noqa: BLE001 - what holds on must be tried again
                self._log_fault("a workload could not be stopped", error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self._handle = None

    def _grace_seconds(self) -> float:
        """Return how long the server may take: one that never answered has no files."""
        answered = self._serving or (self._handle is not None and self._handle.url)
        return self._spec.stop_seconds if self._stop is not None and answered else 0.0

    def _log_driver_fault(self, error: Exception) -> None:
        if isinstance(error, NotNowError):
            _log.info("not now", allocation=self.key.allocation, why=str(error))
        else:
            self._log_fault("the driver failed", error)

    def _log_fault(self, event: str, error: Exception) -> None:
        _log.error(
            event,
            allocation=self.key.allocation,
            epoch=self.key.epoch,
            driver=self._driver.name.value,
            exc_info=error,
        )
