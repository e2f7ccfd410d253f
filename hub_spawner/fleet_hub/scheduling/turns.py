"""After an event: who could start, or start sooner, in the order of the line."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from fleet_hub.scheduling.bars import bar_of, loss_by
from fleet_hub.scheduling.crowd import Crowd
from fleet_hub.scheduling.entries import Entry
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.interests import Interest
from fleet_hub.scheduling.keeping import lacks_less
from fleet_hub.scheduling.line import Line, Place
from fleet_hub.scheduling.profile import FOREVER, fitting_runs, may_start_sooner
from fleet_hub.scheduling.promises import Promises
from fleet_hub.scheduling.quota_watch import QuotaWatch
from fleet_hub.scheduling.waiter import NOTICEABLE_SECONDS, Waiter


_MOST_PROMISES: Final = 1000
_FEWEST_PROMISES: Final = 100
_PROMISES_PER_MACHINE: Final = 20


def most_promises(fleet: Fleet) -> int:
    """Return how many promises are kept at once: who comes after waits without a time.

    A hundred starts later on one machine no bound would be worth its price.
    """
    wanted = _PROMISES_PER_MACHINE * len(fleet.entries)
    return max(_FEWEST_PROMISES, min(_MOST_PROMISES, wanted))


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
        alike: Iterator[tuple[Place, Waiter]] | None = None
        most = most_promises(self.fleet)
        while True:
            start = min(
                self.fleet.start_on(interest, name, self.now) for name in machines
            )
            if start == FOREVER:
                yield from self._keepers(interest, machines)
                return
            may_promise = start <= self.now or len(self.promises) < most
            soon = start + NOTICEABLE_SECONDS
            if self.crowd.are_all_sooner(interest, soon, unpromised=may_promise):
                return
            if alike is None:
                alike = iter(self.crowd.alike(interest))
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

    def _keepers(self, interest: Interest, machines: list[str]) -> Iterator[Place]:
        """Yield for whom one of *machines* may have to be kept: see ``keeping``."""
        keeper = self.promises.keeper_alike(interest)
        if keeper is None:
            first = self.crowd.first_of_unpromised(interest)
            if first is not None:
                yield first
        elif any(lacks_less(self.fleet, keeper, name) for name in machines):
            yield self.line.place_of(keeper.workload)

    def _movable(self, entry: Entry) -> set[str]:
        """Return whose promises on this machine could be earlier ones on it."""
        room, names = entry.room(self.now), set()
        known: dict[object, list[list[tuple[float, float]]]] = {}
        for name in self.promises.on_machine(entry.machine.name):
            waiter = self.waiters[name]
            needs = self.fleet.needs_on(waiter.interest, entry)
            if needs not in known:
                known[needs] = [fitting_runs(room, need, self.now) for need in needs]
            if any(
                may_start_sooner(
                    runs,
                    seconds=waiter.request.hold_seconds,
                    start=waiter.start - NOTICEABLE_SECONDS,
                )
                for runs in known[needs]
            ):
                names.add(name)
        return names


def has_missed(waiter: Waiter, fleet: Fleet, quotas: QuotaWatch, now: float) -> bool:
    """Return whether *waiter* could start now, and no event has brought that up."""
    bar = bar_of(fleet, quotas, waiter)
    if bar is not None:
        return waiter.found is not None and loss_by(fleet, waiter, bar) is not None
    if waiter.bar is not None or waiter.start <= now:
        return True
    found = fleet.soonest(waiter.interest, now, waiter.waiting.rejected_by)
    return found is not None and found.start <= now
