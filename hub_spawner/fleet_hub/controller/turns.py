"""The latest decisions, and how long those of the last day had waited.

The last one of each server is kept with it, so that this outlives a restart.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fleet_hub.controller.records import Decided, Workload


MOST: Final = 500
"""How many decisions are remembered."""
MOST_WAITS: Final = 2000
"""How many waits of each class are."""
LEAST: Final = 20
"""Fewer waits say nothing."""
DAY_SECONDS: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One workload's turn as it came."""

    workload: str
    user: str
    groups: tuple[str, ...]
    server: str
    profile: str
    decided: Decided


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Half of some waits were no longer than *half*, nine in ten than *most*."""

    half: float
    most: float
    samples: int


class Turns:
    """Remembers a bounded number of decisions."""

    def __init__(self) -> None:
        """Begin with none."""
        self._latest: list[Turn] = []
        self._waits: dict[str, deque[tuple[float, float]]] = {}

    def begin(self, records: Iterable[Workload]) -> None:
        """Take over what was decided before, in whatever order."""
        known = [record for record in records if record.decided is not None]
        for record in sorted(known, key=_decided_at):
            self.note(record)

    def note(self, record: Workload) -> None:
        """Remember how the turn of *record* came."""
        decided = record.decided
        if decided is None:
            return
        turn = Turn(
            workload=record.id,
            user=record.principal.name,
            groups=record.principal.groups,
            server=record.server_name,
            profile=record.choice.profile,
            decided=decided,
        )
        # A clock may go back.
        insort(self._latest, turn, key=lambda one: one.decided.at)
        del self._latest[:-MOST]
        waits = self._waits.setdefault(decided.class_name, deque(maxlen=MOST_WAITS))
        waits.append((decided.at, decided.waited))

    def latest(self) -> tuple[Turn, ...]:
        """Return the latest, newest first."""
        return tuple(reversed(self._latest))

    def waits(self, class_name: str, now: float) -> Quantiles | None:
        """Return how long those of the last day had waited; None: they are too few."""
        known = self._waits.get(class_name, ())
        lately = sorted(waited for at, waited in known if at > now - DAY_SECONDS)
        if len(lately) < LEAST:
            return None
        return Quantiles(
            half=_quantile(lately, 0.5),
            most=_quantile(lately, 0.9),
            samples=len(lately),
        )


def _decided_at(record: Workload) -> float:
    return 0.0 if record.decided is None else record.decided.at


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[math.ceil(len(ordered) * share) - 1]
