"""When does a machine have room?  Holds end, promises begin and end.

A hold without a known end is there for ever.  One that should have ended and has not
is treated alike: nobody knows when it will, and a guess would be a broken promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Final, NamedTuple

from fleet_hub.scheduling.vectors import Need, Vector, assign, lowest, minus, plus


FOREVER: Final = math.inf


class Claim(NamedTuple):
    """Amounts that are promised from *start* to *end*."""

    start: float
    end: float
    amounts: Vector


class Hold(NamedTuple):
    """Amounts that are held until *end*."""

    end: float
    amounts: Vector


class Opening(NamedTuple):
    """The first time at which something fits, and what it would take then."""

    start: float
    amounts: Vector


class Segment(NamedTuple):
    """What is free from *start* on, until the next segment starts."""

    start: float
    free: Vector


def segments_of(
    free: Vector, holds: Iterable[Hold], claims: Iterable[Claim], now: float
) -> list[Segment]:
    """Return what is free from *now* on, beside *holds* and *claims*.

    *free* is what is left beside *holds* now.  The answer stays true until its second
    segment starts.
    """
    changes = [(hold.end, hold.amounts) for hold in holds if now < hold.end < FOREVER]
    for claim in claims:
        if claim.end > now:
            if claim.start <= now:
                free = minus(free, claim.amounts)
            else:
                changes.append((claim.start, tuple(-item for item in claim.amounts)))
            if claim.end < FOREVER:
                changes.append((claim.end, claim.amounts))
    segments = [Segment(now, free)]
    for time, change in sorted(changes):
        free = plus(free, change)
        if segments[-1].start == time:
            segments[-1] = Segment(time, free)
        else:
            segments.append(Segment(time, free))
    return segments


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


def may_come_sooner(
    segments: Sequence[Segment],
    needs: Iterable[Need],
    *,
    seconds: float,
    start: float,
    now: float,
) -> bool:
    """Return whether a promise for *start* in *segments* could be an earlier one.

    From *start* on its own room is there, so only the time before is looked at.  True
    may be wrong; False is not.
    """
    return any(_may_come_sooner(segments, need, seconds, start, now) for need in needs)


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
    ends = [*(segment.start for segment in segments[1:]), FOREVER]
    inside = [
        segment.free
        for segment, until in zip(segments, ends, strict=True)
        if until > start and (segment.start < end or segment.start <= start)
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


def _may_come_sooner(
    segments: Sequence[Segment], need: Need, seconds: float, start: float, now: float
) -> bool:
    since: float | None = None
    for time, free in segments:
        if time >= start:
            break
        if assign(free, need) is None:
            since = None
        elif since is None:
            since = max(time, now)
        if since is not None and time >= since + seconds:
            return True
    return since is not None and since < start
