"""When is a holder likely done?  Said from how long earlier ones of its class held on.

Its end by its limit is a bound; most are done before.  Of the earlier ones those count
that held on for longer than it has so far, so the answer is made when somebody reads it.
"""

from __future__ import annotations

import operator
from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fleet_contracts.reasons import Explanation, Holder, LikelyEnd
from fleet_hub.scheduling.holders import MOST as MOST_TOLD, KnownHolder, instant
from fleet_hub.scheduling.likely import EARLY, LATE, LEAST, MOST, place_of


WORTH: Final = 0.9
"""The part of the time until its bound within which an end is worth telling of."""


@dataclass(frozen=True, slots=True, order=True)
class Ran:
    """How one run went that got ready: kept with the workload."""

    at: float
    """When it had ended."""
    seconds: float
    """How long it held what it had."""
    class_name: str


class Runs:
    """The latest runs of each class."""

    def __init__(self, seconds: Mapping[str, Iterable[float]] | None = None) -> None:
        """Begin with what is remembered, the oldest first."""
        self._latest: dict[str, list[Ran]] = {}
        self._ordered: dict[str, tuple[float, ...]] = {}
        for name, some in (seconds or {}).items():
            for at, each in enumerate(some):
                self.note(Ran(at, each, name))

    def note(self, ran: Ran) -> None:
        """Remember a run, whichever is noted first; the oldest of many are forgotten."""
        latest = self._latest.setdefault(ran.class_name, [])
        insort(latest, ran)
        del latest[:-MOST]
        # Looked at far more often than changed, and from other threads as well.
        self._ordered[ran.class_name] = tuple(sorted(one.seconds for one in latest))

    def seconds(self) -> dict[str, tuple[float, ...]]:
        """Return what is remembered, the oldest first."""
        return {
            name: tuple(one.seconds for one in latest)
            for name, latest in sorted(self._latest.items())
        }

    def likely_end(
        self, class_name: str, *, since: float, now: float, bound: float | None
    ) -> LikelyEnd | None:
        """Return when a run that began at *since* is likely done; None: nobody knows.

        Nothing is said either where that is hardly before its *bound*.
        """
        ordered = self._ordered.get(class_name, ())
        over = bisect_right(ordered, now - since)
        left = len(ordered) - over
        if left < LEAST:
            return None
        early, late = (
            since + ordered[over + place_of(left, share)] for share in (EARLY, LATE)
        )
        if bound is not None and late - now > WORTH * (bound - now):
            return None
        return LikelyEnd(early=instant(early), late=instant(late), samples=left)


def with_likely_ends(
    explanation: Explanation, runs: Runs, *, now: float, most: int = MOST_TOLD
) -> Explanation:
    """Return *explanation* with when its holders are likely done, where that is known.

    Only the first *most* are looked at: those that end first come first.
    """
    looked_at, others = explanation.holders[:most], explanation.holders[most:]
    holders = tuple(_with_end(holder, runs, now) for holder in looked_at)
    if all(map(operator.is_, holders, looked_at)):
        return explanation
    return explanation.model_copy(update={"holders": holders + others})


def _with_end(holder: Holder, runs: Runs, now: float) -> Holder:
    if not isinstance(holder, KnownHolder):
        return holder
    ends_by = holder.ends_by
    found = runs.likely_end(
        holder.class_name,
        since=holder.since.timestamp(),
        now=now,
        bound=None if ends_by is None else ends_by.timestamp(),
    )
    return holder if found is None else holder.model_copy(update={"likely_end": found})
