"""Who waits for the same machines: so that an event reaches those whom it concerns.

Whom something keeps from every place, a quota say, is not among them: no machine
helps them, and they stand in nobody's way.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence

from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.interests import Interest
from fleet_hub.scheduling.line import Place
from fleet_hub.scheduling.pools import Pool
from fleet_hub.scheduling.waiter import Waiter


class Crowd:
    """Everybody who waits for a machine, by what they could use."""

    def __init__(self, everybody: Iterable[tuple[Place, Waiter]] = ()) -> None:
        """Begin with *everybody*, who come in line order."""
        self._places: dict[Interest, list[tuple[Place, Waiter]]] = {}
        self._by_pool: dict[Pool, dict[Interest, None]] = {}
        self._by_pin: dict[str, dict[Interest, None]] = {}
        self._unpromised: dict[Interest, set[Waiter]] = {}
        self._latest: dict[Interest, float] = {}
        """No start that is promised to those with an interest is later."""
        for place, waiter in everybody:
            self._places_of(waiter.interest).append((place, waiter))
            self.moved(waiter)

    def join(self, waiter: Waiter, place: Place) -> None:
        """Add *waiter*, who has this place."""
        insort(self._places_of(waiter.interest), (place, waiter))
        self.moved(waiter)

    def leave(self, waiter: Waiter, place: Place) -> None:
        """Take *waiter* out."""
        interest = waiter.interest
        places = self._places[interest]
        del places[bisect_left(places, (place,))]
        self._unpromised.get(interest, set()).discard(waiter)
        if not places:
            del self._places[interest]
            for table in self._tables(interest):
                del table[interest]

    def moved(self, waiter: Waiter) -> None:
        """Follow that *waiter* starts at another time at the latest, or is to."""
        interest = waiter.interest
        unpromised = self._unpromised.setdefault(interest, set())
        if waiter.found is None:
            unpromised.add(waiter)
            return
        unpromised.discard(waiter)
        if waiter.start > self._latest.get(interest, math.inf):
            self._latest[interest] = waiter.start

    def are_all_sooner(
        self, interest: Interest, start: float, *, unpromised: bool
    ) -> bool:
        """Return whether nobody with this interest starts later than *start*.

        Those who are promised nothing start later than any time; they count where
        *unpromised* says so.
        """
        if unpromised and self._unpromised.get(interest):
            return False
        latest = self._latest.get(interest)
        if latest is None:
            latest = max(
                (
                    waiter.start
                    for _, waiter in self._places.get(interest, ())
                    if waiter.found is not None
                ),
                default=-math.inf,
            )
            self._latest[interest] = latest
        elif latest > start:
            # It may have moved earlier meanwhile: worked out again when next asked.
            del self._latest[interest]
        return latest <= start

    def ahead_of(self, interest: Interest, place: Place) -> int:
        """Return how many before *place* could use machines that *interest* could."""
        return sum(
            bisect_left(places, (place,))
            for other, places in self._places.items()
            if not interest.usable.isdisjoint(other.usable)
        )

    def alike(self, interest: Interest) -> Sequence[tuple[Place, Waiter]]:
        """Return those with this interest, in line order, as of now."""
        return tuple(self._places.get(interest, ()))

    def first_of_unpromised(self, interest: Interest) -> Place | None:
        """Return who of those with this interest is first, if none is promised a time."""
        places = self._places.get(interest, ())
        if not places or len(self._unpromised[interest]) < len(places):
            return None
        return places[0][0]

    def touched_by(
        self, fleet: Fleet, machines: Iterable[str]
    ) -> Iterator[tuple[Interest, list[str]]]:
        """Yield each interest that any of *machines* could serve, with those."""
        touched: dict[Interest, list[str]] = {}
        for name in sorted(machines):
            entry = fleet.entries.get(name)
            if entry is None:
                continue
            interests = dict(self._by_pin.get(name, {}))
            for pool in entry.pools:
                interests |= self._by_pool.get(pool, {})
            for interest in interests:
                touched.setdefault(interest, []).append(name)
        return iter(touched.items())

    def _places_of(self, interest: Interest) -> list[tuple[Place, Waiter]]:
        if interest not in self._places:
            self._places[interest] = []
            for table in self._tables(interest):
                table[interest] = None
        return self._places[interest]

    def _tables(self, interest: Interest) -> Iterator[dict[Interest, None]]:
        if interest.pin is not None:
            yield self._by_pin.setdefault(interest.pin.machine, {})
        for pool in interest.view_of:
            yield self._by_pool.setdefault(pool, {})
