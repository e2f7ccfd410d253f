"""When does somebody likely start?  Said from how earlier waits for the same class went.

A promise is a bound: most starts come before it, since most work ends before its limit.
What is remembered of a wait is the part of the promised time that it took, from the
first promise to the start.  Of those parts the ones are counted that are longer than
what has passed already, so that the answer stays true while somebody waits.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


LEAST: Final = 20
"""Fewer similar waits say nothing."""
MOST: Final = 60
"""How many of the latest waits of a class are remembered."""
EARLY: Final = 0.5
LATE: Final = 0.93
"""The part of earlier waits that stands for nine in ten of the next.

Waits come in spells, and the long ones of a spell are the last to be remembered: on
simulated fleets 0.9 of the latest sixty was kept by 87 to 89 in a hundred, and this is by
90 to 92.
"""


@dataclass(frozen=True, slots=True)
class Outset:
    """A promise as it was first made, or made anew after it broke."""

    since: float
    bound: float
    early: float | None = None
    """Which part was said to be likely then; None: nothing was."""
    late: float | None = None

    def part(self, moment: float) -> float:
        """Return which part of the promised time has passed at *moment*."""
        promised = self.bound - self.since
        if promised <= 0:
            return 1.0
        return min(1.0, max(0.0, (moment - self.since) / promised))

    def is_outlasted(self, moment: float) -> bool:
        """Return whether a wait until *moment* is longer than nine in ten should be."""
        return self.late is not None and self.part(moment) > self.late

    def came(self, moment: float) -> Came | None:
        """Return how a start at *moment* compares to what was said; None: nothing was."""
        if self.early is None or self.late is None:
            return None
        part = self.part(moment)
        if part <= self.early:
            return Came.EARLY
        return Came.LATE if part <= self.late else Came.LATER


class Came(StrEnum):
    """When somebody started, by what had been said to be likely."""

    EARLY = "early"
    """By the time that half should come by."""
    LATE = "late"
    """After that, and by the time that nine in ten should come by."""
    LATER = "later"
    """After both."""


@dataclass(frozen=True, slots=True)
class Waited:
    """How one wait went: kept with the workload, so that it outlives a restart."""

    class_name: str
    part: float
    at: float
    came: Came | None = None
    """How that compares to what was said at first; None: nothing was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Likely:
    """Half of all similar waits end by *early*, nine of ten by *late*."""

    early: float
    late: float
    samples: int
    """How many similar waits that is said from."""


class History:
    """The latest waits of each class."""

    def __init__(self, parts: Mapping[str, Iterable[float]] | None = None) -> None:
        """Begin with what is remembered, the oldest first."""
        self._parts = {
            name: deque(some, maxlen=MOST) for name, some in (parts or {}).items()
        }

    def note(self, class_name: str, part: float) -> None:
        """Remember that a wait took this part of what was promised."""
        self._parts.setdefault(class_name, deque(maxlen=MOST)).append(part)

    def parts(self) -> dict[str, tuple[float, ...]]:
        """Return what is remembered, the oldest first."""
        return {name: tuple(some) for name, some in sorted(self._parts.items())}

    def likely(
        self, class_name: str, outset: Outset, *, now: float, bound: float
    ) -> Likely | None:
        """Return when such a wait likely ends; None: too few went like it so far.

        *bound* is the promise as it is now: nothing is said to be later, and nothing at
        all once it has passed.
        """
        if bound <= now:
            return None
        passed = outset.part(now)
        left = self._longer_than(class_name, passed)
        if left is None:
            return None
        promised = outset.bound - outset.since
        early, late = (
            min(bound, outset.since + promised * _quantile(left, share))
            for share in (EARLY, LATE)
        )
        return Likely(early=early, late=late, samples=len(left))

    def saying(self, class_name: str, outset: Outset) -> Outset:
        """Return *outset* with what is said to be likely at its beginning, if anything."""
        left = self._longer_than(class_name, 0.0)
        if left is None:
            return outset
        early, late = (_quantile(left, share) for share in (EARLY, LATE))
        return replace(outset, early=early, late=late)

    def _longer_than(self, class_name: str, passed: float) -> list[float] | None:
        """Return the parts of waits that went on for longer; None: there are too few."""
        left = sorted(it for it in self._parts.get(class_name, ()) if it > passed)
        return left if len(left) >= LEAST else None


def outset_of(
    known: Outset | None, *, now: float, bound: float | None, is_anew: bool
) -> Outset | None:
    """Return what to measure a wait by: the first promise, or the one after a break."""
    if bound is None or bound <= now:
        return None if bound is None else known
    return Outset(now, bound) if known is None or is_anew else known


def _quantile(ordered: list[float], share: float) -> float:
    """Return what the next of its kind stays below with probability *share*.

    One more than the share of the samples themselves: of few samples the largest may
    well be exceeded.
    """
    return ordered[place_of(len(ordered), share)]


def place_of(count: int, share: float) -> int:
    """Return the place of that one among *count* ordered samples."""
    return min(math.ceil((count + 1) * share), count) - 1
