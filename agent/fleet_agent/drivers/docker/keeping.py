"""Which images may go?  Pure: from what the agent fetched, and when it was used.

Only images that the agent itself fetched are ever chosen: what else is in the engine is
somebody else's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


GIB = 1024**3
DAY = 24 * 3600.0

JUST_USED_SECONDS = 3600.0
"""What was used so recently is not removed even where disk is short: a notebook may be
about to start from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """The owner's rule for what nobody uses."""

    image_seconds: float = 30 * DAY
    """How long an image may be unused."""
    free_bytes: int = 10 * GIB
    """While the engine's disk has less room, the image unused longest goes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """An image that was not in the engine before the agent fetched it."""

    refs: tuple[str, ...]
    """What the agent fetched it as."""
    used: float
    """When it was asked for last, in seconds since 1970."""


def unused_too_long(
    fetched: Mapping[str, Fetched],
    running: Collection[str],
    *,
    now: float,
    rule: Keeping,
) -> list[str]:
    """Return the images whose time is over, of which no container in *running* is."""
    return [
        image
        for image, known in sorted(fetched.items())
        if image not in running and now - known.used > rule.image_seconds
    ]


def next_for_room(
    fetched: Mapping[str, Fetched], running: Collection[str], *, now: float
) -> str | None:
    """Return the image to give up next where disk is short; None: none may go."""
    may_go = [
        (known.used, image)
        for image, known in fetched.items()
        if image not in running and now - known.used > JUST_USED_SECONDS
    ]
    return min(may_go)[1] if may_go else None
