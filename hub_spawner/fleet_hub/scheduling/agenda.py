"""What the engine has to look at: machines that changed, people whose turn may have come."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from fleet_hub.scheduling.choice import SLACK_SECONDS


@dataclass(slots=True)
class Later:
    """What is to be looked at once something else is over."""

    changed: set[str] = field(default_factory=set)
    doubted: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)


class Agenda:
    """What happened since the last decision, and what time alone will bring."""

    def __init__(self) -> None:
        """Begin with nothing to do."""
        self.changed: set[str] = set()
        """Machines that may have more room than before."""
        self.doubted: set[str] = set()
        """Machines on which a promise may have lost its ground."""
        self.pending: set[str] = set()
        """Workloads to be looked at, whatever happened to machines."""
        self.let_down: set[str] = set()
        """Workloads whose promise broke."""
        self._alarms: list[tuple[float, str, str]] = []

    def __bool__(self) -> bool:
        """Whether there is anything to look at now."""
        return bool(self.changed or self.pending)

    def doubt(self, machine: str) -> None:
        """Something about *machine* may be worse than before, or better."""
        self.doubted.add(machine)
        self.changed.add(machine)

    def take_machines(self) -> tuple[set[str], set[str]]:
        """Return the changed and the doubted machines, and begin anew with them."""
        taken = self.changed, self.doubted
        self.changed, self.doubted = set(), set()
        return taken

    def take_pending(self) -> set[str]:
        """Return who is pending, and begin anew with that."""
        taken, self.pending = self.pending, set()
        return taken

    def put_off(self, later: Later) -> None:
        """Keep for *later* what there is to look at now."""
        later.changed |= self.changed
        later.doubted |= self.doubted
        later.pending |= self.pending
        self.changed, self.doubted, self.pending = set(), set(), set()

    def take_up(self, later: Later) -> None:
        """Look at what was put off."""
        self.changed |= later.changed
        self.doubted |= later.doubted
        self.pending |= later.pending

    def watch(self, machine: str, *, ends_by: float | None) -> None:
        """Look at *machine* again should its holder not have ended in time."""
        if ends_by is not None:
            self.remind(ends_by + SLACK_SECONDS, machine=machine)

    def remind(self, at: float, *, machine: str = "", workload: str = "") -> None:
        """Look at a machine or a workload at the time *at*."""
        heapq.heappush(self._alarms, (at, machine, workload))

    @property
    def next_at(self) -> float | None:
        """When time alone may change something; None: only an event can."""
        return self._alarms[0][0] if self._alarms else None

    def due(self, now: float) -> Iterable[tuple[str, str]]:
        """Yield, once, the (machine, workload) pairs whose time has come."""
        while self._alarms and self._alarms[0][0] <= now:
            _, machine, workload = heapq.heappop(self._alarms)
            yield machine, workload
