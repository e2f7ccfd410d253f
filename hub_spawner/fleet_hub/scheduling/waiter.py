"""A workload in the line, with what was decided about it so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fleet_contracts.reasons import Explanation
from fleet_hub.scheduling.answers import Asker
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.entries import Found
from fleet_hub.scheduling.interests import Interest
from fleet_hub.scheduling.profile import FOREVER, SOMEDAY
from fleet_hub.scheduling.snapshot import Reservation, Waiting


NOTICEABLE_SECONDS: Final = 1.0
"""An earlier time by less than this is not worth moving a promise for."""


@dataclass(slots=True, eq=False)
class Waiter:
    """One waiting workload."""

    waiting: Waiting
    request: Request
    interest: Interest
    """What the fleet has for it; renewed when the fleet's structure changes."""
    promise: float | None = None
    """The time by which it starts, as far as is known; None: nothing is."""
    said: float | None = None
    """The earliest such time that anybody was told, since it last had to be later."""
    found: Found | None = None
    """Where that promise is kept."""
    start: float = FOREVER
    """When it starts at the latest; for ever away without a promise."""
    bar: Explanation | None = None
    """What keeps it from being placed at all: a quota, or files that are away."""
    lost: Explanation | None = None
    """What took the ground from its promise, until it is known what that means."""
    is_unrestored: bool = False
    """The machine of an earlier run's promise is away, and may be about to come back."""
    broken: Explanation | None = None
    """Why its time was put off last, until that was told; see ``kept_from``."""

    @property
    def is_timed(self) -> bool:
        """Whether it is promised a time, and not merely kept some room."""
        return self.found is not None and self.start < SOMEDAY

    @property
    def workload(self) -> str:
        """The name of the workload."""
        return self.waiting.workload

    @property
    def reservation(self) -> Reservation | None:
        """Where its time is kept, for the next run too; None: it is promised none.

        As long as the machine of an earlier run's promise may come back it is that one.
        """
        found = self.found
        if found is not None and self.is_timed:
            return Reservation(
                machine=found.machine, driver=found.need.driver, start=found.start
            )
        return self.waiting.reservation if self.is_unrestored else None

    @property
    def kept_from(self) -> Explanation | None:
        """Why it starts later than was said; None: it does not.

        What was never told and what is as early again is nobody's disappointment.
        """
        if self.said is None:
            return None
        is_later = self.promise is None or self.promise > self.said + NOTICEABLE_SECONDS
        return self.broken if is_later else None

    def tell(self) -> None:
        """Remember that its time was told to somebody: it is held to it from here on."""
        if self.promise is not None:
            earlier = self.promise if self.said is None else self.said
            self.said = min(earlier, self.promise)

    def asker(self, *, names_visible: bool) -> Asker:
        """Return who asks, for explanations."""
        return Asker(
            principal=self.waiting.principal,
            pin=self.waiting.pin,
            rejected_by=self.waiting.rejected_by,
            names_visible=names_visible,
        )
