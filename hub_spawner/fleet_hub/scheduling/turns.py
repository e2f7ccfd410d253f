"""After an event: who could start, or start sooner, in the order of the line."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from fleet_hub.scheduling.crowd import Crowd
from fleet_hub.scheduling.fleet import Fleet, Interest
from fleet_hub.scheduling.line import Line, Place
from fleet_hub.scheduling.pools import Entry
from fleet_hub.scheduling.profile import may_come_sooner
from fleet_hub.scheduling.promises import Promises
from fleet_hub.scheduling.waiter import Waiter


MOST_PROMISES: Final = 1000
"""Promises kept at once: who comes after them waits without a time."""

NOTICEABLE_SECONDS: Final = 1.0
"""An earlier time by less than this is not worth moving a promise for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """What an event may have changed, for everybody who waits."""

    fleet: Fleet
    line: Line
    waiters: Mapping[str, Waiter]
    promises: Promises
    crowd: Crowd
    now: float

    def after(self, changed: set[str], pending: set[str]) -> Iterator[Waiter]:
        """Yield who could profit from *changed* machines, and everybody *pending*.

        Who comes later is only yielded if that is still so after the turns before it:
        the answer is to be used as it comes.
        """
        names = {name for name in pending if name in self.waiters}
        for machine in changed & self.fleet.entries.keys():
            names |= self._movable(self.fleet.entries[machine])
        turns: list[tuple[Place, int]] = [
            (self.line.place_of(name), -1) for name in names
        ]
        streams = [
            self._hopefuls(interest, machines)
            for interest, machines in self.crowd.touched_by(self.fleet, changed)
        ]
        for number, stream in enumerate(streams):
            turns += [(place, number) for place in islice(stream, 1)]
        heapq.heapify(turns)
        while turns:
            place, number = heapq.heappop(turns)
            waiter = self.waiters.get(place.workload)
            if waiter is not None:
                yield waiter
            if number >= 0:
                for following in islice(streams[number], 1):
                    heapq.heappush(turns, (following, number))

    def _hopefuls(self, interest: Interest, machines: list[str]) -> Iterator[Place]:
        """Yield who could start sooner on one of *machines*, looking anew each time."""
        alike = iter(self.crowd.alike(interest))
        while True:
            start = min(
                self.fleet.start_on(interest, name, self.now) for name in machines
            )
            may_promise = start <= self.now or len(self.promises) < MOST_PROMISES
            soon = start + NOTICEABLE_SECONDS
            found = next(
                (
                    place
                    for place, waiter in alike
                    # The first test is the one that nearly everybody fails.
                    if waiter.start > soon and (may_promise or waiter.found is not None)
                ),
                None,
            )
            if found is None:
                return
            yield found

    def _movable(self, entry: Entry) -> set[str]:
        """Return whose promises on this machine could be earlier ones on it."""
        names = set()
        for name in self.promises.on_machine(entry.machine.name):
            waiter = self.waiters[name]
            if may_come_sooner(
                entry.room(self.now),
                self.fleet.needs_on(waiter.interest, entry),
                seconds=waiter.request.hold_seconds,
                start=waiter.start - NOTICEABLE_SECONDS,
                now=self.now,
            ):
                names.add(name)
        return names
