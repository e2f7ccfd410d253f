"""When is a holder likely done?  Said from how long earlier ones of its class held on.

Its end by its limit is a bound; most are done before.  Of the earlier ones those count
that held on for longer than it has so far, so the answer is made when somebody reads it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

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


class Likelihood(NamedTuple):
    """When a run is likely done."""

    early: float
    late: float
    samples: int


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
    ) -> Likelihood | None:
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
        return Likelihood(early, late, left)


def with_likely_ends(
    explanation: Explanation, runs: Runs, *, now: float
) -> Explanation:
    """Return *explanation* with when its holders are likely done, where that is known."""
    return with_ends(explanation, likely_ends(explanation, runs, now=now))


def likely_ends(
    explanation: Explanation, runs: Runs, *, now: float, most: int = MOST_TOLD
) -> tuple[Likelihood | None, ...]:
    """Return when its holders are likely done, of each where that is known.

    Only the first *most* are looked at: those that end first come first.
    """
    return tuple(_end_of(holder, runs, now) for holder in explanation.holders[:most])


def with_ends(
    explanation: Explanation, ends: Sequence[Likelihood | None]
) -> Explanation:
    """Return *explanation* with *ends*, which are those of its first holders."""
    if not any(ends):
        return explanation
    holders = explanation.holders
    said = [
        holder if end is None else holder.model_copy(update={"likely_end": _said(end)})
        for holder, end in zip(holders, ends, strict=False)
    ]
    return explanation.model_copy(update={"holders": (*said, *holders[len(said) :])})


def _end_of(holder: Holder, runs: Runs, now: float) -> Likelihood | None:
    if not isinstance(holder, KnownHolder):
        return None
    ends_by = holder.ends_by
    return runs.likely_end(
        holder.class_name,
        since=holder.since.timestamp(),
        now=now,
        bound=None if ends_by is None else ends_by.timestamp(),
    )


def _said(end: Likelihood) -> LikelyEnd:
    early, late, samples = end
    return LikelyEnd(early=instant(early), late=instant(late), samples=samples)
