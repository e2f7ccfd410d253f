"""All allocations of this machine: what the controller asks, carried out once.

Every message may come twice, late, or for something that is long over.  The ledger
decides what a message means; this module only looks there and acts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from fleet_agent.acceptance import Machine, judge_epoch, judge_launch
from fleet_agent.allocation import Allocation
from fleet_agent.copying.copies import Copies
from fleet_agent.drivers.base import Driver, Job
from fleet_agent.errors import AgentError, LedgerWriteError
from fleet_agent.ledger import Ledger
from fleet_agent.ledger_entry import Entry, Key, StopIntent, without_secrets
from fleet_agent.memory import give_back
from fleet_agent.records import Publish, Records
from fleet_contracts.protocol import (
    Acknowledge,
    AgentEvent,
    Forget,
    InventoryItem,
    Launch,
    Report,
    Stop,
)
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import DriverName, WorkloadSpec


_JUDGE_SECONDS = 10.0
"""How long the first link waits until it is known what still runs."""
_GENTLE_SECONDS = 8.0
"""How long servers may take to end when the agent takes them along."""

_log = structlog.stdlib.get_logger("fleet_agent.supervisor")


class Supervisor:
    """Owns the allocations; everything that is not durable lives here."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        drivers: Mapping[DriverName, Driver],
        machine: Callable[[], Machine],
        localise: Callable[[WorkloadSpec], WorkloadSpec],
        publish: Publish,
        verify: Callable[[WorkloadSpec], Awaitable[None]],
        copies: Copies,
    ) -> None:
        """Run allocations with *drivers*.

        *machine* is asked at each launch, since facts come in later.  *localise*
        rewrites a spec for this machine's network.  *verify* is asked between
        preparation and start, and raises ``DriverError``.
        """
        self.fault: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Fails when the agent cannot go on."""
        self._ledger = ledger
        self._drivers = drivers
        self._machine = machine
        self._localise = localise
        self._publish = publish
        self._verify = verify
        self._copies = copies
        self._allocations: dict[Key, Allocation] = {}
        self._opening: dict[DriverName, asyncio.Task[None]] = {}
        self._closing = False

    # ------------------------------------------------------------- the whole of it

    async def recover(self) -> None:
        """Take up everything that the ledger holds; once, before the first link."""
        for name, driver in self._drivers.items():
            self._opening[name] = asyncio.create_task(_open(driver))
        try:
            await self._copies.tidy(self._drivers, self._ledger.entries())
        except OSError as error:
            _log.error("unused copies could not be removed", error=str(error))
        for entry in self._ledger.entries():
            if entry.holds and entry.spec is not None:
                self._resume(entry, entry.spec)
        judged = [
            asyncio.create_task(allocation.judged.wait())
            for allocation in self._allocations.values()
        ]
        if judged:
            _, unjudged = await asyncio.wait(judged, timeout=_JUDGE_SECONDS)
            for task in unjudged:
                task.cancel()

    async def close(self, *, stop_workloads: bool) -> None:
        """Let go of all allocations; with *stop_workloads* end them first."""
        self._closing = True
        if stop_workloads:
            await self._stop_all()
        await asyncio.gather(*(one.leave() for one in self._allocations.values()))
        for opening in self._opening.values():
            opening.cancel()
        if self._opening:
            await asyncio.wait(self._opening.values())
        for driver in self._drivers.values():
            await driver.close()

    def inventory(self) -> Sequence[InventoryItem]:
        """Return what the ledger holds now."""
        return [entry.as_inventory() for entry in self._ledger.entries()]

    # ------------------------------------------------------------------- messages

    def launch(self, message: Launch) -> None:
        """Run an allocation, or say no; what is known already is only confirmed."""
        if self._closing:
            # The controller asks the next agent, which has heard nothing of it.
            return
        key = Key(message.allocation, message.epoch)
        entry = self._ledger.entry(key)
        if entry is None:
            entry = self._open(key, message.spec)
        else:
            self._confirm(entry)
        if entry is None or not entry.holds or entry.stop is not None:
            return
        allocation = self._allocations.get(key)
        if allocation is not None:
            job = Job(
                allocation=key.allocation,
                epoch=key.epoch,
                spec=self._localise(message.spec),
            )
            allocation.launch(job)

    def stop(self, message: Stop) -> None:
        """End an allocation; one that never came is noted, so that it cannot come."""
        key = Key(message.allocation, message.epoch)
        entry = self._ledger.entry(key)
        if entry is None:
            self._note_stopped(key, message.explanation)
            return
        self._confirm(entry)
        allocation = self._allocations.get(key)
        if entry.holds and allocation is not None:
            allocation.ask_stop(
                StopIntent(now=message.now, explanation=message.explanation)
            )
        elif entry.holds:
            _log.error("an allocation has no driver", allocation=key.allocation)

    def end(self, key: Key, explanation: Explanation) -> None:
        """End an allocation by this machine's own decision."""
        allocation = self._allocations.get(key)
        if allocation is not None:
            allocation.ask_stop(StopIntent(explanation=explanation))

    def forget(self, message: Forget) -> None:
        """Drop an allocation that is over."""
        key = Key(message.allocation, message.epoch)
        if self._ledger.forget(key, at=Records.now()):
            self._allocations.pop(key, None)

    def acknowledge(self, message: Acknowledge) -> None:
        """Stop sending reports that the controller has."""
        key = Key(message.allocation, message.epoch)
        self._ledger.acknowledge(key, message.seq, at=Records.now())

    # -------------------------------------------------------------------- helpers

    def _open(self, key: Key, spec: WorkloadSpec) -> Entry | None:
        """Accept or reject an allocation that is not in the ledger."""
        entries = self._ledger.entries()
        newest = self._ledger.newest_epoch(key.allocation)
        if newest == key.epoch:
            # It was here, is over and forgotten: nothing to keep of a late repetition.
            self._publish(_refused(key, Reason.EPOCH_STALE))
            return None
        refusal = judge_epoch(key, newest=newest, entries=entries)
        if refusal is None:
            refusal = judge_launch(spec, machine=self._machine(), entries=entries)
        elif refusal.reason is Reason.AGENT_REJECTED:
            self._end_older(key)
        event = AgentEvent.ACCEPTED if refusal is None else AgentEvent.REJECTED
        try:
            report = self._ledger.open(
                key, event, at=Records.now(), spec=spec, explanation=refusal
            )
        except LedgerWriteError as error:
            _log.error("a launch could not be recorded", error=str(error))
            self._publish(_refused(key, Reason.DISK_FULL))
            return None
        self._publish(report)
        _log.info(
            "launch judged",
            allocation=key.allocation,
            epoch=key.epoch,
            verdict=event.value,
            reason=refusal and refusal.reason.value,
        )
        entry = self._ledger.entry(key)
        if entry is not None and refusal is None:
            self._admit(entry, spec)
        return entry

    def _end_older(self, key: Key) -> None:
        """A newer epoch of the same allocation means that the older one is over."""
        for other, allocation in self._allocations.items():
            if other.allocation == key.allocation and other.epoch < key.epoch:
                allocation.ask_stop(
                    StopIntent(explanation=Explanation(reason=Reason.EPOCH_STALE))
                )

    def _resume(self, entry: Entry, spec: WorkloadSpec) -> None:
        allocation = self._admit(entry, spec)
        if allocation is not None:
            allocation.resume()

    def _admit(self, entry: Entry, spec: WorkloadSpec) -> Allocation | None:
        driver = self._drivers.get(spec.runtime.driver)
        if driver is None:
            # It keeps what it holds: nobody can say that nothing of it runs.
            _log.error(
                "an allocation's driver is not there: bring it back in the settings",
                allocation=entry.key.allocation,
                driver=spec.runtime.driver.value,
            )
            return None
        allocation = Allocation(
            entry,
            spec=without_secrets(spec),
            driver=driver,
            records=Records(entry.key, ledger=self._ledger, publish=self._publish),
            ready=lambda: self._ready(spec.runtime.driver),
            verify=self._verify,
            copies=self._copies,
            on_fault=self._on_fault,
        )
        self._allocations[entry.key] = allocation
        return allocation

    async def _ready(self, driver: DriverName) -> None:
        await asyncio.wait({self._opening[driver]})

    def _note_stopped(self, key: Key, explanation: Explanation | None) -> None:
        newest = self._ledger.newest_epoch(key.allocation)
        if newest is not None and newest >= key.epoch:
            # Forgotten, or another epoch's business: nothing of this one runs.
            self._publish(
                _report(key, AgentEvent.ENDED, explanation=explanation, seq=1)
            )
            return
        self._publish(
            self._ledger.open(
                key, AgentEvent.ENDED, at=Records.now(), explanation=explanation
            )
        )

    def _confirm(self, entry: Entry) -> None:
        """Tell again how far an allocation is, when asked about it again."""
        reports = self._ledger.unacknowledged(entry.key)
        if not reports and entry.seq > 0:
            reports = (
                _report(
                    entry.key,
                    entry.event,
                    seq=entry.seq,
                    explanation=entry.explanation,
                    url=entry.url,
                ),
            )
        for report in reports:
            self._publish(report)

    async def _stop_all(self) -> None:
        gently = StopIntent(
            explanation=Explanation(
                reason=Reason.STOPPED_BY_ADMIN,
                detail="the machine's agent was stopped together with its workloads",
            )
        )
        active = [one for one in self._allocations.values() if one.is_active]
        for allocation in active:
            allocation.ask_stop(gently)
        endings = [asyncio.create_task(one.ended()) for one in active]
        if not endings:
            return
        _, late = await asyncio.wait(endings, timeout=_GENTLE_SECONDS)
        if late:
            for allocation in active:
                if allocation.is_active:
                    allocation.ask_stop(StopIntent(now=True))
            await asyncio.wait(late, timeout=_GENTLE_SECONDS)

    def _on_fault(self, error: BaseException) -> None:
        if isinstance(error, AgentError):
            if not self.fault.done():
                self.fault.set_exception(error)
            return
        _log.error("an allocation's task failed", exc_info=error)


async def _open(driver: Driver) -> None:
    try:
        await driver.open()
        # Verifying what is there reads all of it.
        give_back()
    except Exception as error:  # noqa: BLE001 - each launch will say what is wrong
        _log.error("a driver is not ready", driver=driver.name.value, exc_info=error)


def _refused(key: Key, reason: Reason) -> Report:
    """Return a refusal that is not in the ledger; if it gets lost, it is made again."""
    return _report(
        key, AgentEvent.REJECTED, seq=1, explanation=Explanation(reason=reason)
    )


def _report(
    key: Key,
    event: AgentEvent,
    *,
    seq: int,
    explanation: Explanation | None = None,
    url: str | None = None,
) -> Report:
    return Report(
        allocation=key.allocation,
        epoch=key.epoch,
        seq=seq,
        at=Records.now(),
        event=event,
        url=url,
        explanation=explanation,
    )
