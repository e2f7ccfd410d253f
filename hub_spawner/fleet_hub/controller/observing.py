"""Who watches the controller at work, to count and to time it; nobody decides here."""

from __future__ import annotations

from typing import Protocol

from fleet_hub.controller.ports import Change
from fleet_hub.scheduling.decisions import Plan


class Observer(Protocol):
    """Hears of what has happened.  It must be quick, and must not fail."""

    def changed(self, change: Change) -> None:
        """*change* is durable, and the model shows it."""

    def decided(self, plan: Plan, seconds: float) -> None:
        """A cycle decided *plan* and made it durable in *seconds*."""
