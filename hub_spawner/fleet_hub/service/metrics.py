"""What Prometheus reads: the line, waits, reasons, holds and decisions.

No label names a user, a workload, a machine or a ref: labels are classes, states and
codes, of which there are few.
"""

from __future__ import annotations

from datetime import datetime
from importlib.metadata import version
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineEvent, TimelineKind
from fleet_hub.controller.core import Core
from fleet_hub.controller.ports import Change
from fleet_hub.controller.records import Workload
from fleet_hub.scheduling.decisions import Plan
from fleet_hub.scheduling.likely import Came
from fleet_hub.service.gauges import FAMILIES, PREFIX, RESCUES, Family, Gauges


_WAITS: Final = (0.1, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600)
_STARTS: Final = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 1800)
_DECISIONS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1)


class Metrics:
    """Counts what one controller does, and reads the rest off it when asked."""

    def __init__(self, core: Core) -> None:
        """Watch *core* from now on."""
        self._core = core
        self.registry = CollectorRegistry()
        self.families = [*FAMILIES, RESCUES]
        """What is told, as it is documented."""
        # A second series for each counter, which says when this process began.
        disable_created_metrics()
        ProcessCollector(registry=self.registry)
        Info(PREFIX, "The version that runs.", registry=self.registry).info(
            {"version": version("jupyterhub-fleet")}
        )
        self._waits = self._histogram(
            "wait_seconds", "From asking to being placed.", ["class"], _WAITS
        )
        self._starts = self._histogram(
            "start_seconds", "From being placed to answering.", ["class"], _STARTS
        )
        self._decisions = self._histogram(
            "decision_seconds",
            "How long an admission cycle took that decided something, durably.",
            [],
            _DECISIONS,
        )
        self._placed = self._counter("placements", "Workloads placed.", ["class"])
        self._waited = self._counter(
            "waits", "Times that a workload was told why it waits.", ["reason"]
        )
        self._refused = self._counter("refusals", "Workloads refused.", ["reason"])
        self._failed = self._counter("failures", "Workloads failed.", ["reason"])
        self._ended = self._counter("ends", "Workloads stopped.", ["reason"])
        self._broken = self._counter(
            "broken_promises", "Promised times that moved later.", ["cause"]
        )
        self._likely = self._counter(
            "likely_starts",
            "Starts by what was said to be likely: by the early time, by the late one, "
            "or later.",
            ["came"],
        )
        self._held = self._counter(
            "allocation_seconds",
            "Time that released allocations were held, from placed to released.",
            ["class"],
        )
        self._silences = self._counter(
            "silences", "Workloads whose machine stopped talking.", []
        )
        self.registry.register(Gauges(core))
        core.observers.append(self)

    def text(self) -> bytes:
        """Return everything, in Prometheus' text format."""
        self._begin_at_zero()
        return generate_latest(self.registry)

    def _begin_at_zero(self) -> None:
        """Tell of what did not happen yet: Prometheus sees no rise from nothing."""
        for chosen in self._core.catalogs.current().classes:
            for family in (self._placed, self._waits, self._starts, self._held):
                family.labels(chosen.name)
        for came in Came:
            self._likely.labels(came.value)

    def decided(self, plan: Plan, seconds: float) -> None:
        """Time a cycle that decided something; the others say little."""
        if plan.placements or plan.refusals:
            self._decisions.observe(seconds)

    def changed(self, change: Change) -> None:
        """Count what the timelines tell, and what was released."""
        for workload, event in change.events:
            record = self._core.model.workloads.get(workload)
            self._count(event, record)
        for span in change.spans:
            seconds = (span.ended - span.began) / 1e6
            self._held.labels(span.held.class_name).inc(seconds)

    def _count(self, event: TimelineEvent, record: Workload | None) -> None:
        code = _code(event.explanation)
        if event.kind is TimelineKind.PLACED and record is not None:
            self._placed.labels(class_of(record)).inc()
            self._waits.labels(class_of(record)).observe(
                _since(record.asked_at, event.at)
            )
            waited = record.waited
            if waited and waited.came and waited.at == event.at.timestamp():
                self._likely.labels(waited.came.value).inc()
        elif event.kind is TimelineKind.READY and record and record.assignment:
            self._starts.labels(class_of(record)).observe(
                _since(record.assignment.since, event.at)
            )
        elif event.kind is TimelineKind.WAITING:
            self._waited.labels(code).inc()
        elif event.kind is TimelineKind.REFUSED:
            self._refused.labels(code).inc()
        elif event.kind is TimelineKind.FAILED:
            self._failed.labels(code).inc()
        elif event.kind is TimelineKind.STOPPED:
            self._ended.labels(code).inc()
        elif event.kind is TimelineKind.SILENT:
            self._silences.inc()
        elif code == Reason.PROMISE_BROKEN.value and event.explanation is not None:
            # Its cause is one of our own words: no agent tells of a promise.
            self._broken.labels(event.explanation.subject or "").inc()

    def _counter(self, name: str, text: str, labels: list[str]) -> Counter:
        self.families.append(Family(name, "counter", text, tuple(labels)))
        return Counter(f"{PREFIX}_{name}", text, labels, registry=self.registry)

    def _histogram(
        self, name: str, text: str, labels: list[str], buckets: tuple[float, ...]
    ) -> Histogram:
        self.families.append(Family(name, "histogram", text, tuple(labels)))
        return Histogram(
            f"{PREFIX}_{name}", text, labels, buckets=buckets, registry=self.registry
        )


def class_of(record: Workload) -> str:
    """Return the class that *record* asked for."""
    assignment = record.assignment
    if assignment is not None:
        return assignment.class_name
    return record.choice.class_name or ""


def _code(explanation: Explanation | None) -> str:
    return "" if explanation is None else explanation.reason.value


def _since(begin: datetime, end: datetime) -> float:
    """Return the seconds between; clocks of two machines never make it negative."""
    return max(0.0, (end - begin).total_seconds())
