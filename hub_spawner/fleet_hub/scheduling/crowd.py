"""Who waits for the same machines: so that an event reaches those whom it concerns."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence

from fleet_hub.scheduling.fleet import Fleet, Interest
from fleet_hub.scheduling.line import Place
from fleet_hub.scheduling.pools import Pool
from fleet_hub.scheduling.waiter import Waiter


class Crowd:
    """Everybody who waits, by what they could use."""

    def __init__(self) -> None:
        """Begin empty."""
        self._places: dict[Interest, list[tuple[Place, Waiter]]] = {}
        self._by_pool: dict[Pool, dict[Interest, None]] = {}
        self._by_pin: dict[str, dict[Interest, None]] = {}

    def join(self, waiter: Waiter, place: Place) -> None:
        """Add *waiter*, who has this place."""
        interest = waiter.interest
        if interest not in self._places:
            self._places[interest] = []
            for table in self._tables(interest):
                table[interest] = None
        insort(self._places[interest], (place, waiter))

    def leave(self, waiter: Waiter, place: Place) -> None:
        """Take *waiter* out."""
        interest = waiter.interest
        places = self._places[interest]
        del places[bisect_left(places, (place,))]
        if not places:
            del self._places[interest]
            for table in self._tables(interest):
                del table[interest]

    def alike(self, interest: Interest) -> Sequence[tuple[Place, Waiter]]:
        """Return those with this interest, in line order, as of now."""
        return tuple(self._places[interest])

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

    def _tables(self, interest: Interest) -> Iterator[dict[Interest, None]]:
        if interest.pin is not None:
            yield self._by_pin.setdefault(interest.pin.machine, {})
        for pool in interest.view_of:
            yield self._by_pool.setdefault(pool, {})
