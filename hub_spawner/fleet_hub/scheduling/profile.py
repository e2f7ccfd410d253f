"""When does a machine have room?  Holds end, promises begin and end.

A hold without a known end is there for ever.  One that should have ended and has not
is treated alike: nobody knows when it will, and a guess would be a broken promise.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import Final, NamedTuple

from fleet_hub.scheduling.vectors import Need, Vector, assign, lowest, minus


FOREVER: Final = math.inf
SOMEDAY: Final = 1e11
"""Some time after all that has an end: what is kept for somebody without a time."""


class Claim(NamedTuple):
    """Amounts that are promised from *start* to *end*."""

    start: float
    end: float
    amounts: Vector

    @property
    def taken(self) -> Vector:
        """What changes when it begins."""
        return tuple([-amount for amount in self.amounts])


class Hold(NamedTuple):
    """Amounts that are held until *end*."""

    end: float
    amounts: Vector


class Opening(NamedTuple):
    """The first time at which something fits, and what it would take then."""

    start: float
    amounts: Vector


Segment = tuple[float, Vector]
"""What is free from a time on, until the next segment starts."""


def segments_of(
    free: Vector, holds: Iterable[Hold], claims: Iterable[Claim], now: float
) -> list[Segment]:
    """Return what is free from *now* on, beside *holds* and *claims*.

    *free* is what is left beside *holds* now.  The answer stays true until its second
    segment starts.
    """
    changes = [(hold.end, hold.amounts) for hold in holds if now < hold.end < FOREVER]
    for claim in claims:
        start, end, amounts = claim
        if end > now:
            if start <= now:
                free = minus(free, amounts)
            else:
                changes.append((start, claim.taken))
            if end < FOREVER:
                changes.append((end, amounts))
    changes.sort()
    segments = [(now, free)]
    last = now
    for time, change in changes:
        free = tuple(map(add, free, change))
        if time == last:
            segments[-1] = (time, free)
        else:
            segments.append((time, free))
            last = time
    return segments


def adjusted(
    segments: list[Segment], start: float, end: float, amounts: Vector
) -> list[Segment]:
    """Return *segments* with *amounts* more free from *start* to *end*.

    What began before the first segment counts from that on; it ends after that begins.
    """
    start = max(start, segments[0][0])
    result = segments[:]
    first = _boundary(result, start)
    last = len(result) if end == FOREVER else _boundary(result, end)
    result[first:last] = [
        (time, tuple(map(add, free, amounts))) for time, free in result[first:last]
    ]
    # What is alike on both sides of an earlier boundary needs none there.
    for position in (last, first):
        if (
            0 < position < len(result)
            and result[position][1] == result[position - 1][1]
        ):
            del result[position]
    return result


def fitting_runs(
    segments: Sequence[Segment], need: Need, now: float
) -> list[tuple[float, float]]:
    """Return the spans of time, in order, in which *need* fits without a gap."""
    runs: list[tuple[float, float]] = []
    since: float | None = None
    for time, free in segments:
        if assign(free, need) is None:
            if since is not None:
                runs.append((since, time))
                since = None
        elif since is None:
            since = max(time, now)
    if since is not None:
        runs.append((since, FOREVER))
    return runs


def may_start_sooner(
    runs: Sequence[tuple[float, float]], *, seconds: float, start: float
) -> bool:
    """Return whether a promise for *start* could be an earlier one, in these *runs*.

    From *start* on its own room is there, so only the time before is looked at.
    """
    for since, until in runs:
        if since >= start:
            return False
        if until >= start or until - since >= seconds:
            return True
    return False


def earliest(
    segments: Sequence[Segment], need: Need, *, seconds: float, now: float
) -> Opening | None:
    """Return the first time from *now* on at which *need* fits for *seconds*.

    None: it is not known to fit at any time.
    """
    first = 0
    while first < len(segments):
        found = _fits_from(segments, first, need, seconds, now)
        if isinstance(found, Opening):
            return found
        first = found
    return None


def is_kept(segments: Sequence[Segment], claim: Claim, now: float) -> bool:
    """Return whether *claim* can be kept to the second in *segments*."""
    room = _window(segments, max(claim.start, now), claim.end)
    return all(
        left >= wanted
        for left, wanted in zip(room, claim.amounts, strict=True)
        if wanted
    )


def opening_at(
    segments: Sequence[Segment], need: Need, *, start: float, seconds: float
) -> Opening | None:
    """Return what *need* takes from exactly *start* on; None: it does not fit then."""
    amounts = assign(_window(segments, start, start + seconds), need)
    return None if amounts is None else Opening(start, amounts)


def _window(segments: Sequence[Segment], start: float, end: float) -> Vector:
    """Return what is free all the time from *start* to *end*."""
    ends = [*(begin for begin, _ in segments[1:]), FOREVER]
    inside = [
        free
        for (begin, free), until in zip(segments, ends, strict=True)
        if until > start and (begin < end or begin <= start)
    ]
    return reduce(lowest, inside)


def _fits_from(
    segments: Sequence[Segment], first: int, need: Need, seconds: float, now: float
) -> Opening | int:
    """Return the opening at segment *first*, or the next segment that may be one."""
    start, window = segments[first]
    start = max(start, now)
    amounts = assign(window, need)
    if amounts is None:
        return first + 1
    for position in range(first + 1, len(segments)):
        time, free = segments[position]
        if time >= start + seconds:
            break
        window = lowest(window, free)
        amounts = assign(window, need)
        if amounts is None:
            # Where it does not fit by itself nothing that spans it can fit.
            return position + 1 if assign(free, need) is None else first + 1
    return Opening(start, amounts)


def _boundary(segments: list[Segment], time: float) -> int:
    """Return where the segment that starts at *time* stands, made if there is none."""
    position = bisect_left(segments, (time,))
    if position == len(segments) or segments[position][0] != time:
        segments.insert(position, (time, segments[position - 1][1]))
    return position
