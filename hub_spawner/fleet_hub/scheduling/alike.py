"""What every machine answers to one request, each code with its numbers told once.

One machine is asked for all that are equal to it.  Only where there is room that may be
promised to others is each asked by itself.  Holders are left to ``inspection``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, filterfalse
from typing import Final

from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.scheduling.answers import machine_numbers
from fleet_hub.scheduling.equals import equal_machines
from fleet_hub.scheduling.interests import Part
from fleet_hub.scheduling.nearness import nearness
from fleet_hub.scheduling.outlooks import Outlook
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.vectors import DISK
from fleet_hub.scheduling.waiter import Waiter


_OF_DISKS: Final = frozenset({Reason.DISK_TOO_SMALL, Reason.DISK_BUSY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Machines that say the same, holders aside."""

    explanation: Explanation | None
    """The code with its numbers; None: they would take the request now."""
    machines: tuple[str, ...]
    """By name."""
    capacities: tuple[int, ...] = ()
    """In the order of the machines, where each has its own; otherwise empty."""
    frees: tuple[int, ...] = ()

    @property
    def reason(self) -> Reason | None:
        """The code alone."""
        return None if self.explanation is None else self.explanation.reason


def alike(planner: Planner, waiter: Waiter) -> tuple[Alike, ...]:
    """Return what all machines say to *waiter*: takers first, then the nearest misses."""
    sheaf = _Sheaf(planner, waiter)
    entries, pin = planner.fleet.entries, waiter.interest.pin
    if pin is not None:
        elsewhere = Explanation(reason=Reason.DATA_NOT_LOCAL)
        sheaf.add(elsewhere, entries.keys() - {pin.machine})
    for part in waiter.interest.parts:
        sheaf.ask(part)
    return tuple(sorted(sheaf.bound(), key=_nearest_first))


class _Sheaf:
    """Collects answers, and binds those together that are equal."""

    def __init__(self, planner: Planner, waiter: Waiter) -> None:
        self._planner = planner
        self._waiter = waiter
        self._bar = planner.bar_of(waiter)
        self._rejected_by = waiter.waiting.rejected_by
        self._promised = frozenset(planner.promises.machines())
        self._names: dict[Explanation | None, list[str]] = {}
        self._disks: dict[Reason, list[tuple[str, int, int]]] = {}
        self._of_disk: dict[Reason, Explanation] = {}

    def add(self, explanation: Explanation | None, names: Iterable[str]) -> None:
        """Say of all of *names* that they answer with *explanation*."""
        self._names.setdefault(explanation, []).extend(names)

    def ask(self, part: Part) -> None:
        """Ask the machines of *part*."""
        group, outlook, pin = part.group, part.outlook, self._waiter.interest.pin
        # Where nothing could run it is the same miss, whatever is free.
        if group.signature.facts.known and not outlook.needs and pin is None:
            self.add(outlook.nearest_miss, _everybody(part))
            return
        for names in equal_machines(self._planner.fleet, self._waiter, part):
            self._ask_one(names, outlook)

    def bound(self) -> Iterator[Alike]:
        """Yield everything that was said."""
        for explanation, names in self._names.items():
            if names:
                yield Alike(explanation=explanation, machines=tuple(sorted(names)))
        for reason, rows in self._disks.items():
            rows.sort()
            is_busy = reason is Reason.DISK_BUSY
            yield Alike(
                explanation=self._of_disk[reason],
                machines=tuple(name for name, _, _ in rows),
                capacities=tuple(capacity for _, capacity, _ in rows),
                frees=tuple(free for _, _, free in rows if is_busy),
            )

    def _ask_one(self, names: list[str], outlook: Outlook) -> None:
        """Ask one machine for all of *names*."""
        entry = self._planner.fleet.entries[names[0]]
        why = machine_numbers(entry, outlook, self._rejected_by)
        if why is not None and why.reason in _OF_DISKS:
            self._add_disks(why, names)
        elif why is not None or self._bar is not None:
            self.add(why or self._bar, names)
        else:
            promised = self._promised.intersection(names)
            open_to_all = names
            if promised:
                open_to_all = [name for name in names if name not in promised]
            self.add(None, open_to_all)
            for name in promised:
                self.add(self._behind(name), [name])

    def _add_disks(self, why: Explanation, names: list[str]) -> None:
        """Say of *names* that their disks are too small or too full, each its own."""
        entries = [self._planner.fleet.entries[name] for name in names]
        self._disks.setdefault(why.reason, []).extend(
            (name, entry.capacity[DISK], max(0, entry.free[DISK]))
            for name, entry in zip(names, entries, strict=True)
        )
        self._of_disk.setdefault(
            why.reason, why.model_copy(update={"capacity": None, "free": None})
        )

    def _behind(self, name: str) -> Explanation | None:
        """Return that a machine's room is promised to others, if it is."""
        planner, waiter = self._planner, self._waiter
        if planner.fleet.start_on(waiter.interest, name, planner.now) <= planner.now:
            return None
        others = planner.promises.on_machine(name) - {waiter.workload}
        return Explanation(
            reason=Reason.BEHIND, requested=len(others), unit="workloads"
        )


def _everybody(part: Part) -> Iterator[str]:
    """Yield the machines of *part*, mostly by name already."""
    group = part.group
    names = chain(group.pool.entries, group.troubled)
    if part.own is not None:
        return filter(group.owners[part.own].__contains__, names)
    if part.others is not None:
        return filterfalse(group.owners[part.others].__contains__, names)
    return names


def _nearest_first(one: Alike) -> tuple[bool, tuple[bool, int], str]:
    if one.reason is None:
        return False, (False, 0), one.machines[0]
    may_clear, distance = nearness(one.reason)
    return True, (not may_clear, -distance), one.machines[0]
