"""Whose turn it is: priority, then fair share, then age.

Within a priority users take turns: whoever has used least for their weight comes
first, and each of their workloads in the line counts before their next one.  A
workload that agents keep rejecting yields to the others of its priority.

Places are worked out when somebody joins, and all of them again every minute: use
moves slowly, and a line that reorders itself at each event could not be explained.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from fleet_contracts.catalog import Catalog
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.decisions import Rule
from fleet_hub.scheduling.shares import ENTRY_SECONDS, asked_rate, weight_of
from fleet_hub.scheduling.snapshot import Capacity, Ranking, Waiting


YIELDS_AFTER: Final = 3
"""Rejections after which a workload yields its turn, and again after as many more."""

RANKED_EVERY_SECONDS: Final = 60.0


class Place(NamedTuple):
    """A place in the line; the least comes first."""

    behind_priority: int
    yields: int
    share: float
    asked_at: float
    workload: str


def behind_priority(waiting: Waiting, request: Request) -> int:
    """Return the first part of a place: an admin's word, or the profile's priority.

    Never both: who is put first or last is before or behind whoever was put there
    earlier, whatever their profiles say.
    """
    return -(waiting.priority or request.profile.priority)


class Line:
    """Everybody who waits, in order."""

    def __init__(self, catalog: Catalog) -> None:
        """Begin empty, with nothing known of anybody's use."""
        self._catalog = catalog
        self._capacity = Capacity()
        self._used: dict[int, float] = {}
        self._owing: dict[tuple[int, int], float] = {}
        """What each user's waiting workloads count, by priority."""
        self._weights: dict[tuple[str, tuple[str, ...]], float] = {}
        self._entries: dict[str, float] = {}
        """What a start of each class counts."""
        self._places: list[Place] = []
        self._place_of: dict[str, Place] = {}

    def __iter__(self) -> Iterator[str]:
        """Yield the workloads in the order in which they get their turn."""
        return (place.workload for place in self._places)

    def place_of(self, workload: str) -> Place:
        """Return the place of a workload that waits."""
        return self._place_of[workload]

    def rule_of(self, workload: str) -> Rule:
        """Return what puts a workload that waits before whoever comes next."""
        place = self._place_of[workload]
        at = bisect_left(self._places, place)
        if at:
            return Rule.BACKFILL
        if at + 1 == len(self._places):
            return Rule.ALONE
        after = self._places[at + 1]
        rules = (Rule.PRIORITY, Rule.YIELDED, Rule.SHARE)
        for rule, mine, other in zip(rules, place, after, strict=False):
            if mine != other:
                return rule
        return Rule.AGE

    def join(self, waiting: Waiting, request: Request) -> None:
        """Give *waiting* its place."""
        place = self._enter(waiting, request)
        insort(self._places, place)

    def _enter(self, waiting: Waiting, request: Request) -> Place:
        user = waiting.principal.user_id
        behind = behind_priority(waiting, request)
        owing = self._owing.get((user, behind), 0.0)
        place = Place(
            behind,
            waiting.rejections // YIELDS_AFTER,
            (self._used.get(user, 0.0) + owing) / self._weight(waiting.principal),
            waiting.asked_at,
            waiting.workload,
        )
        self._owing[user, behind] = owing + self._entry(request)
        self._place_of[waiting.workload] = place
        return place

    def leave(self, waiting: Waiting, request: Request, *, starts: bool) -> None:
        """Take *waiting* out; what *starts* counts as use from now on."""
        place = self._place_of.pop(waiting.workload)
        del self._places[bisect_left(self._places, place)]
        user, entry = waiting.principal.user_id, self._entry(request)
        self._owing[user, place.behind_priority] -= entry
        if starts:
            self._used[user] = self._used.get(user, 0.0) + entry

    @contextmanager
    def visit(self, waiting: Waiting, request: Request) -> Iterator[None]:
        """Let *waiting* stand in the line for a question; it is then as it was."""
        before = dict(self._owing)
        self.join(waiting, request)
        try:
            yield
        finally:
            self.leave(waiting, request, starts=False)
            self._owing = before

    def rank(
        self,
        everybody: Iterable[tuple[Waiting, Request]],
        capacity: Capacity,
        used: Mapping[int, float],
    ) -> None:
        """Give everybody their place anew, by what users have had by now."""
        if capacity != self._capacity:
            self._capacity = capacity
            self._entries.clear()
        self._used = dict(used)
        self._owing.clear()
        self._place_of.clear()
        self._places = sorted(
            self._enter(waiting, request)
            for waiting, request in sorted(everybody, key=_age)
        )

    def ranking(self) -> Ranking:
        """Return how the line stands, for whoever decides about it elsewhere."""
        return Ranking(
            capacity=self._capacity,
            used=dict(self._used),
            shares={place.workload: place.share for place in self._places},
        )

    def keep(self, shares: Mapping[str, float]) -> None:
        """Give everybody the place that they had, and new ones the one they have."""
        self._places = sorted(
            place._replace(share=shares.get(place.workload, place.share))
            for place in self._places
        )
        self._place_of = {place.workload: place for place in self._places}

    def _weight(self, principal: Principal) -> float:
        who = (principal.name, principal.groups)
        if who not in self._weights:
            self._weights[who] = weight_of(principal, self._catalog.shares)
        return self._weights[who]

    def _entry(self, request: Request) -> float:
        name = request.chosen.name
        if name not in self._entries:
            rate = asked_rate(request.chosen, self._capacity)
            self._entries[name] = rate * ENTRY_SECONDS
        return self._entries[name]


def _age(item: tuple[Waiting, Request]) -> tuple[float, str]:
    return item[0].asked_at, item[0].workload
