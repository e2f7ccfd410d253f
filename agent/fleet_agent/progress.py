"""Which progress is worth a durable report: a driver may tell every package it unpacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fleet_contracts.timeline import Progress


SHORTEST_PAUSE: Final = 0.5
"""Seconds between two reports of the same step."""
MOST_OPEN_REPORTS: Final = 200
"""With so many unacknowledged reports, an allocation's progress is no longer told."""


@dataclass(slots=True)
class Throttle:
    """Lets through each new step, each completed step, and else one in a while."""

    step: str | None = None
    told_at: float = 0.0

    def passes(self, progress: Progress, *, now: float) -> bool:
        """Return whether to tell of *progress* at *now*."""
        is_new = progress.step != self.step
        is_complete = progress.total is not None and progress.done >= progress.total
        if not (is_new or is_complete or now - self.told_at >= SHORTEST_PAUSE):
            return False
        self.step, self.told_at = progress.step, now
        return True
