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


def earliest(
    free: Vector,
    holds: Iterable[Hold],
    claims: Sequence[Claim],
    need: Need,
    *,
    seconds: float,
    now: float,
) -> Opening | None:
    """Return the first time from *now* on at which *need* fits for *seconds*.

    *free* is what is left beside *holds* now; *claims* are kept.  None: it is not
    known to fit at any time.
    """
    if not claims:
        return _monotone(free, holds, need, now)
    segments = _segments(free, holds, claims, now)
    first = 0
    while first < len(segments):
        found = _fits_from(segments, first, need, seconds)
        if isinstance(found, Opening):
            return found
        first = found
    return None


def is_kept(
    free: Vector,
    holds: Iterable[Hold],
    claims: Iterable[Claim],
    claim: Claim,
    now: float,
) -> bool:
    """Return whether *claim* can be kept to the second beside *holds* and *claims*."""
    room = _window(
        _segments(free, holds, claims, now), max(claim.start, now), claim.end
    )
    return all(
        left >= wanted
        for left, wanted in zip(room, claim.amounts, strict=True)
        if wanted
    )


def opening_at(
    free: Vector,
    holds: Iterable[Hold],
    claims: Iterable[Claim],
    need: Need,
    *,
    start: float,
    seconds: float,
    now: float,
) -> Opening | None:
    """Return what *need* takes from exactly *start* on, which is not before *now*."""
    room = _window(_segments(free, holds, claims, now), start, start + seconds)
    amounts = assign(room, need)
    return None if amounts is None else Opening(start, amounts)


def _window(
    segments: Sequence[tuple[float, Vector]], start: float, end: float
) -> Vector:
    """Return what is free all the time from *start* to *end*."""
    ends = [*(time for time, _ in segments[1:]), FOREVER]
    inside = [
        room
        for (time, room), until in zip(segments, ends, strict=True)
        if until > start and (time < end or time <= start)
    ]
    return reduce(lowest, inside)


def _monotone(
    free: Vector, holds: Iterable[Hold], need: Need, now: float
) -> Opening | None:
    """Without promises room only grows: the first end that makes it fit is it."""
    amounts = assign(free, need)
    if amounts is not None:
        return Opening(now, amounts)
    for hold in sorted(hold for hold in holds if now < hold.end < FOREVER):
        free = plus(free, hold.amounts)
        amounts = assign(free, need)
        if amounts is not None:
            return Opening(hold.end, amounts)
    return None


def _segments(
    free: Vector, holds: Iterable[Hold], claims: Iterable[Claim], now: float
) -> list[tuple[float, Vector]]:
    """Return what is free from each time on at which that changes."""
    changes = [(hold.end, hold.amounts) for hold in holds if now < hold.end < FOREVER]
    for claim in claims:
        if claim.end > now:
            if claim.start <= now:
                free = minus(free, claim.amounts)
            else:
                changes.append((claim.start, tuple(-item for item in claim.amounts)))
            if claim.end < FOREVER:
                changes.append((claim.end, claim.amounts))
    segments = [(now, free)]
    for time, change in sorted(changes):
        free = plus(free, change)
        if segments[-1][0] == time:
            segments[-1] = (time, free)
        else:
            segments.append((time, free))
    return segments


def _fits_from(
    segments: Sequence[tuple[float, Vector]], first: int, need: Need, seconds: float
) -> Opening | int:
    """Return the opening at segment *first*, or the next segment that may be one."""
    start, window = segments[first]
    for position in range(first, len(segments)):
        time, free = segments[position]
        if time >= start + seconds:
            break
        window = lowest(window, free)
        if assign(window, need) is None:
            # Where it does not fit by itself nothing that spans it can fit.
            return position + 1 if assign(free, need) is None else first + 1
    amounts = assign(window, need)
    return first + 1 if amounts is None else Opening(start, amounts)
