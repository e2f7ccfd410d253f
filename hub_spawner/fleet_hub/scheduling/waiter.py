"""A workload in the line, with what was decided about it so far."""

from __future__ import annotations

from dataclasses import dataclass

from fleet_contracts.reasons import Explanation
from fleet_hub.scheduling.answers import Asker
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.entries import Found
from fleet_hub.scheduling.interests import Interest
from fleet_hub.scheduling.profile import FOREVER, SOMEDAY
from fleet_hub.scheduling.snapshot import Waiting


@dataclass(slots=True, eq=False)
class Waiter:
    """One waiting workload."""

    waiting: Waiting
    request: Request
    interest: Interest
    """What the fleet has for it; renewed when the fleet's structure changes."""
    promise: float | None = None
    """The time by which it was said to start; None: none was said."""
    found: Found | None = None
    """Where that promise is kept."""
    start: float = FOREVER
    """When it starts at the latest; for ever away without a promise."""
    bar: Explanation | None = None
    """What keeps it from being placed at all: a quota, or files that are away."""
    lost: Explanation | None = None
    """What took the ground from its promise, until it is known what that means."""
    broken: Explanation | None = None
    """Why it starts later than it was said; told once."""

    @property
    def is_timed(self) -> bool:
        """Whether it is promised a time, and not merely kept some room."""
        return self.found is not None and self.start < SOMEDAY

    @property
    def workload(self) -> str:
        """The name of the workload."""
        return self.waiting.workload

    def asker(self, *, names_visible: bool) -> Asker:
        """Return who asks, for explanations."""
        return Asker(
            principal=self.waiting.principal,
            pin=self.waiting.pin,
            rejected_by=self.waiting.rejected_by,
            names_visible=names_visible,
        )
