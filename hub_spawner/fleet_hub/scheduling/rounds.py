"""Turns after some news, taken a few at a time; later news comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fleet_hub.scheduling.agenda import Agenda, Later
from fleet_hub.scheduling.deciding import Decider
from fleet_hub.scheduling.promises import Promises
from fleet_hub.scheduling.turns import Turns
from fleet_hub.scheduling.waiter import Waiter


@dataclass(slots=True)
class _Round:
    """Turns after some news, as far as they were not taken yet."""

    changed: set[str]
    turns: Iterator[Waiter]
    later: Later = field(default_factory=Later)
    """What these turns themselves brought up."""


class Rounds:
    """All rounds that are under way, the latest news last."""

    def __init__(self, agenda: Agenda, decider: Decider, promises: Promises) -> None:
        """Begin with nothing under way."""
        self._agenda = agenda
        self._decider = decider
        self._promises = promises
        self._rounds: list[_Round] = []
        self.has_started = False
        """Somebody started in the turn that is being taken, or in one before it."""

    def __bool__(self) -> bool:
        """Whether turns are left."""
        return bool(self._rounds)

    def take(
        self, now: float, turns: Callable[[float], Turns], most: int | None
    ) -> bool:
        """Give up to *most* waiters their turn; return whether that was everybody."""
        taken, self.has_started = 0, False
        if self._agenda:
            # News comes before what is left of earlier turns: those only move.
            self._rounds.append(self._begin(now, turns))
        while self._rounds:
            current = self._rounds[-1]
            for waiter in current.turns:
                had_started, self.has_started = self.has_started, False
                self._decider.take_turn(waiter, current.changed, now)
                taken += 1
                # Whoever starts need not wait for those who only move.
                is_enough = taken == most or (had_started and not self.has_started)
                self.has_started = self.has_started or had_started
                if most is not None and is_enough:
                    self._agenda.put_off(current.later)
                    return False
            self._rounds.pop()
            self._agenda.take_up(current.later)
            if self._agenda:
                self._rounds.append(self._begin(now, turns))
        return True

    def _begin(self, now: float, turns: Callable[[float], Turns]) -> _Round:
        changed, doubted = self._agenda.take_machines()
        for name in sorted(doubted):
            self._decider.lose(self._promises.check(name, now))
        pending = self._agenda.take_pending()
        return _Round(changed, turns(now).after(changed, pending))
