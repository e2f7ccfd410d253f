"""The store without a disk, for tests and for a fleet that may be forgotten.

It refuses what the durable store refuses; one suite runs against both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, replace

from fleet_contracts.timeline import TimelineEvent
from fleet_hub.controller.audit_entry import AuditEntry, Numbered
from fleet_hub.controller.errors import StoreWriteError
from fleet_hub.controller.ports import EVENTS_KEPT, Change, Contents
from fleet_hub.controller.records import (
    EnrolmentCode,
    Issued,
    MachineRecord,
    Secrets,
    Workload,
)
from fleet_hub.controller.spans import Held, Span, Total, touches, within
from fleet_hub.scheduling.snapshot import Usage


class MemoryStore:
    """A store that lives as long as the object; ``reopened`` is the next process."""

    def __init__(self) -> None:
        """Begin empty."""
        self._generation = 1
        self._workloads: dict[str, Workload] = {}
        self._issued: dict[str, Issued] = {}
        self._machines: dict[str, MachineRecord] = {}
        self._codes: dict[str, EnrolmentCode] = {}
        self._audit: list[AuditEntry] = []
        self._secrets: dict[str, Secrets] = {}
        self._usage: dict[int, Usage] = {}
        self._spans: dict[str, Span] = {}
        self._events: dict[str, list[TimelineEvent]] = {}

    def reopened(self) -> MemoryStore:
        """Return the same contents as the next process would find them."""
        again = MemoryStore()
        again._generation = self._generation + 1
        again._workloads = dict(self._workloads)
        again._issued = dict(self._issued)
        again._machines = dict(self._machines)
        again._codes = dict(self._codes)
        again._audit = list(self._audit)
        again._secrets = dict(self._secrets)
        again._usage = dict(self._usage)
        again._spans = dict(self._spans)
        again._events = {name: list(events) for name, events in self._events.items()}
        return again

    def load(self) -> Contents:
        """Return what was there when the store was opened."""
        return Contents(
            generation=self._generation,
            workloads=tuple(sorted(self._workloads.values(), key=lambda w: w.id)),
            issued=tuple(sorted(self._issued.values(), key=lambda i: i.epoch)),
            machines=tuple(sorted(self._machines.values(), key=lambda m: m.name)),
            codes=tuple(sorted(self._codes.values(), key=lambda c: c.code_hash)),
            usage=dict(self._usage),
        )

    def commit(self, change: Change) -> None:
        """Take *change* over, or nothing of it.

        Raises:
            StoreWriteError: it breaks a promise that the durable store guards.
        """
        workloads = {
            name: record
            for name, record in self._workloads.items()
            if name not in change.removed
        } | change.workloads
        issued = dict(self._issued)
        for allocation, record in change.issued.items():
            if record is None:
                issued.pop(allocation, None)
            else:
                issued[allocation] = record
        events = self._with_events(change)
        _check(workloads, issued)
        if any(span.allocation in self._spans for span in change.spans):
            raise StoreWriteError("an allocation is released twice")
        self._workloads, self._issued, self._events = workloads, issued, events
        self._machines |= change.machines
        self._audit += change.audit
        for code_hash, code in change.codes.items():
            self._codes.pop(code_hash, None)
            if code is not None:
                self._codes[code_hash] = code
        self._usage |= change.usage
        self._rename(change.renamed)
        self._spans |= {span.allocation: span for span in change.spans}
        for name in change.removed:
            self._secrets.pop(name, None)
        for name, secrets in change.secrets.items():
            self._secrets.pop(name, None)
            if secrets is not None:
                self._secrets[name] = secrets
        if change.generation is not None:
            self._generation = change.generation

    def _rename(self, renamed: Mapping[tuple[int, str], str]) -> None:
        for allocation, span in self._spans.items():
            held = span.held
            name = renamed.get((held.user_id, held.user))
            if name is not None:
                self._spans[allocation] = replace(span, held=replace(held, user=name))

    def _with_events(self, change: Change) -> dict[str, list[TimelineEvent]]:
        events = {
            name: kept
            for name, kept in self._events.items()
            if name not in change.removed
        }
        for workload, event in change.events:
            kept = events.get(workload, [])
            if any(earlier.seq == event.seq for earlier in kept):
                raise StoreWriteError(f"event {event.seq} is there already")
            events[workload] = [
                earlier
                for earlier in kept
                if earlier.seq > event.seq - EVENTS_KEPT
                and not _same_step(earlier, event)
            ] + [event]
        return events

    def events(self, workload: str, *, after: int = 0) -> tuple[TimelineEvent, ...]:
        """Return the events of *workload* with a higher ``seq`` than *after*."""
        return tuple(
            event for event in self._events.get(workload, ()) if event.seq > after
        )

    def secrets(self, workload: str) -> Secrets | None:
        """Return what a launch of *workload* needs, unless it was scrubbed."""
        return self._secrets.get(workload)

    def audit(
        self, *, before: int | None = None, limit: int = 100, target: str = ""
    ) -> tuple[Numbered, ...]:
        """Return the newest entries of the audit log, newest first."""
        found = [
            Numbered(seq=seq, entry=entry)
            for seq, entry in enumerate(self._audit, start=1)
            if (before is None or seq < before) and target in {"", entry.target}
        ]
        return tuple(reversed(found))[:limit]

    def totals(self, since: int, until: int) -> tuple[Total, ...]:
        """Return what was released and held within a period, in microseconds."""
        sums: dict[Held, list[int]] = {}
        for span in self._spans.values():
            if touches(span, since, until):
                entry = sums.setdefault(span.held, [0, 0])
                entry[0] += 1
                entry[1] += within(span, since, until)
        return tuple(
            Total(held=held, allocations=count, microseconds=microseconds)
            for held, (count, microseconds) in sorted(
                sums.items(), key=lambda item: astuple(item[0])
            )
        )

    def write_back(self) -> None:
        """Nothing is put off."""

    def tidy(self) -> None:
        """Nothing is kept that was scrubbed."""

    def close(self) -> None:
        """Nothing is held that another process could want."""


def _check(workloads: dict[str, Workload], issued: dict[str, Issued]) -> None:
    keys = [record.key for record in workloads.values()]
    if len(set(keys)) != len(keys):
        raise StoreWriteError("two workloads of one server")
    epochs = [record.epoch for record in issued.values()]
    if len(set(epochs)) != len(epochs):
        raise StoreWriteError("an epoch is used twice")
    holders = [record.workload for record in issued.values() if record.open]
    if len(set(holders)) != len(holders):
        raise StoreWriteError("a workload holds two allocations")


def _same_step(earlier: TimelineEvent, event: TimelineEvent) -> bool:
    return (
        event.progress is not None
        and earlier.progress is not None
        and earlier.progress.step == event.progress.step
        and earlier.generation == event.generation
    )
