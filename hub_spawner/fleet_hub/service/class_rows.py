"""What there is of each class, who waits for it, and for how long people waited."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from fleet_contracts.allocations import State
from fleet_contracts.language import mark, translated
from fleet_contracts.sentences import sentence
from fleet_contracts.telling import duration
from fleet_hub.controller.core import Core
from fleet_hub.controller.turns import Quantiles
from fleet_hub.scheduling.places import Places, places_of


_STARTING: Final = frozenset({State.PLACED, State.PREPARING, State.STARTING})
_OPEN: Final = ("done", "✓", mark("open"))
_BUSY: Final = ("running", "●", mark("busy"))
_NOT_NOW: Final = ("failed", "✕", mark("no machine takes it now"))
_NOWHERE: Final = ("failed", "✕", mark("no machine for it"))
_NOT_OFFERED: Final = ("failed", "✕", mark("no profile offers it"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """One class."""

    name: str
    offered: bool
    """Some profile has it."""
    places: Places
    starting: int
    waiting: int
    oldest_seconds: float | None
    """How long the longest wait has lasted; None: nobody waits."""
    waits: Quantiles | None

    @property
    def oldest(self) -> str:
        """The longest wait in words."""
        return duration(self.oldest_seconds)

    @property
    def half(self) -> str:
        """How long half of the waits were, in words."""
        return duration(self.waits.half if self.waits else None)

    @property
    def most(self) -> str:
        """How long nine in ten were, in words."""
        return duration(self.waits.most if self.waits else None)

    @property
    def mark(self) -> str:
        """How the state is coloured."""
        return self._state[0]

    @property
    def glyph(self) -> str:
        """Its sign."""
        return self._state[1]

    @property
    def state(self) -> str:
        """Its word, or the sentence that keeps everybody from it."""
        if self.places.barred is not None:
            return sentence(self.places.barred)
        return translated(self._state[2])

    @property
    def _state(self) -> tuple[str, str, str]:
        if not self.offered:
            return _NOT_OFFERED
        if not self.places.total:
            return _NOT_NOW if self.places.none_now else _NOWHERE
        return _OPEN if self.places.free else _BUSY


def class_rows(core: Core) -> list[ClassRow]:
    """Return every class of the catalog, in its order."""
    now = core.clock.now()
    planner = core.engine.planner(now)
    starting: Counter[str] = Counter(
        record.assignment.class_name
        for record in core.model.workloads.values()
        if record.state in _STARTING and record.assignment is not None
    )
    waiting: Counter[str] = Counter()
    oldest: dict[str, float] = {}
    for waiter in planner.waiters.values():
        name = waiter.request.chosen.name
        waiting[name] += 1
        waited = max(0.0, now.timestamp() - waiter.waiting.asked_at)
        oldest[name] = max(oldest.get(name, 0.0), waited)
    offered = {name for each in planner.catalog.profiles for name in each.classes}
    return [
        ClassRow(
            name=item.name,
            offered=item.name in offered,
            places=places_of(planner, item),
            starting=starting[item.name],
            waiting=waiting[item.name],
            oldest_seconds=oldest.get(item.name),
            waits=core.model.turns.waits(item.name, now.timestamp()),
        )
        for item in planner.catalog.classes
    ]
