"""What is the least that would have to change so that a request fits?

Feasibility is asked again with one requirement relaxed, by the same filters.  Only
requirements that some machine named as its reason are looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from fleet_contracts.changes import Change, ChangeKind
from fleet_contracts.reasons import FACTS, Explanation, Reason
from fleet_hub.scheduling.bars import bar_of
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.nearness import HOPELESS
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.profile import Segment
from fleet_hub.scheduling.prospects import Prospect, Prospects
from fleet_hub.scheduling.relaxations import STEPS, Step, written
from fleet_hub.scheduling.vectors import Vector
from fleet_hub.scheduling.waiter import Waiter


_OF_DEVICES: Final = frozenset(
    {
        Reason.GPU_COUNT_TOO_SMALL,
        Reason.VRAM_TOO_SMALL,
        Reason.COMPUTE_CAPABILITY_TOO_LOW,
        Reason.DEVICE_MODEL_MISMATCH,
        Reason.UNHEALTHY,
        Reason.SAME_DEVICE,
        Reason.CAPABILITIES_UNKNOWN,
        Reason.GPU_BUSY,
        Reason.BEHIND,
    }
)
"""A machine names what too few of its devices have: another of the class's wishes, or
one device less, may leave enough of them."""
_NAMED_BY: Final[Mapping[ChangeKind, frozenset[Reason]]] = {
    ChangeKind.DEVICE_MEMORY: _OF_DEVICES,
    ChangeKind.DEVICES: _OF_DEVICES,
    ChangeKind.CPU: frozenset({Reason.CPU_TOO_SMALL, Reason.CPU_BUSY, Reason.BEHIND}),
    ChangeKind.MEMORY: frozenset(
        {Reason.MEMORY_TOO_SMALL, Reason.MEMORY_BUSY, Reason.BEHIND}
    ),
    ChangeKind.DISK: frozenset(
        {Reason.DISK_TOO_SMALL, Reason.DISK_BUSY, Reason.BEHIND}
    ),
    ChangeKind.COMPUTE_CAPABILITY: _OF_DEVICES,
    ChangeKind.DEVICE_MODEL: _OF_DEVICES,
}
"""The reasons that a change of each kind could clear on a machine."""


def changes_for(
    planner: Planner, waiter: Waiter, counts: Mapping[Reason, int]
) -> tuple[Change, ...]:
    """Return what would make *waiter* fit, the smallest change of each kind.

    Amounts come first, the least relaxed of them at the head; another class of the
    same profile comes last.  *counts* says what the machines answer as things are:
    where all of them say never, a change helps that lets any machine serve; where
    some are merely busy, one that starts it now.
    """
    hopeless = all(FACTS[reason].kind in HOPELESS for reason in counts)
    search = _Search(planner, waiter, must_be_free=not hopeless)
    found: list[tuple[float, Change]] = []
    if planner.bar_of(waiter) is None:
        # Who waits for a quota, or for files, is helped by no other machine.
        for kind, reasons in _NAMED_BY.items():
            if reasons & counts.keys():
                found += search.smallest(kind)
    found.sort(key=lambda item: -item[0])
    return (*(change for _, change in found), *search.classes())


class _Beside:
    """What is free of machines of which something is promised to others, at any time.

    Nobody may ask; whoever asks again is told what was found the first time.
    """

    def __init__(self, planner: Planner, waiter: Waiter) -> None:
        self._planner = planner
        self._mine = (waiter.workload,)
        self._found: list[Vector] | None = None

    def __iter__(self) -> Iterator[Vector]:
        if self._found is None:
            self._found = [amounts for room in self._look() for _, amounts in room]
        return iter(self._found)

    def _look(self) -> Iterator[list[Segment]]:
        planner = self._planner
        for name in planner.promises.machines() & planner.fleet.entries.keys():
            yield planner.fleet.entries[name].room_without(self._mine, planner.now)


class _Search:
    """Tries other requests of one asker on one fleet."""

    def __init__(self, planner: Planner, waiter: Waiter, *, must_be_free: bool) -> None:
        self.planner = planner
        self.waiter = waiter
        self.must_be_free = must_be_free
        self._beside = _Beside(planner, waiter)
        self._prospects = Prospects(planner, waiter)

    def smallest(self, kind: ChangeKind) -> Iterator[tuple[float, Change]]:
        """Yield the smallest helpful change of *kind* with its size, if there is one."""
        chosen = self.waiter.request.chosen
        steps = STEPS[kind](self.planner.fleet, chosen, self._beside)
        if kind is ChangeKind.DEVICE_MODEL:
            helpful = [step for step in steps if self._helps(self._with(step))]
            tried = [(step, self._prospects.of(self._with(step))) for step in helpful]
            best = max(tried, key=lambda item: item[1][::-1], default=None)
        else:
            # A lower demand never suits fewer machines, so halving finds the first.
            first = bisect_left(
                steps, 1, key=lambda step: int(self._helps(self._with(step)))
            )
            best = None
            if first < len(steps):
                best = steps[first], self._prospects.of(self._with(steps[first]))
        if best is not None:
            step, prospect = best
            requested = written(kind, self.waiter.request.chosen)
            yield step.kept, _change(kind, requested, step.instead, prospect)

    def classes(self) -> Iterator[Change]:
        """Yield the first other class of the profile that would help, the kin first."""
        request, waiting = self.waiter.request, self.waiter.waiting
        catalog, mine = self.planner.catalog, self.waiter.request.chosen
        others = [item for item in catalog.classes_of(request.profile) if item != mine]
        others.sort(key=lambda item: item.accelerator is not mine.accelerator)
        for other in others:
            asked = self.planner.request(waiting, other.name)
            if isinstance(asked, Explanation) or self._is_barred(asked):
                continue
            if self._helps(asked):
                prospect = self._prospects.of(asked)
                yield _change(ChangeKind.CLASS, mine.name, other.name, prospect)
                return

    def _is_barred(self, request: Request) -> bool:
        other = replace(self.waiter, request=request)
        return bar_of(self.planner.fleet, self.planner.quotas, other) is not None

    def _with(self, step: Step) -> Request:
        return replace(self.waiter.request, chosen=step.chosen, specs={})

    def _helps(self, request: Request) -> bool:
        if self.must_be_free:
            return self._prospects.would_start(request)
        return self._prospects.would_serve(request)


def _change(
    kind: ChangeKind, requested: str, instead: str, prospect: Prospect
) -> Change:
    return Change(
        kind=kind,
        requested=requested,
        instead=instead,
        machines=prospect.machines,
        free_now=prospect.free_now,
    )
