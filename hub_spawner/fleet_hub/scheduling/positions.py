"""How many before somebody want the same machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import takewhile

from fleet_hub.scheduling.interests import Interest
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.waiter import Waiter


@dataclass(slots=True, eq=False)
class _Ahead:
    """How many of one kind of asker have passed, and which groups they could use."""

    groups: frozenset[str]
    count: int = 0


def positions(
    planner: Planner, wanted: Container[str] | None = None
) -> Iterator[tuple[Waiter, int]]:
    """Yield those *wanted*, or everybody, in line order with their position.

    Who is kept from every place stands in nobody's way.
    """
    ahead: dict[Interest, _Ahead] = {}
    for workload in planner.line:
        waiter = planner.waiters[workload]
        interest = waiter.interest
        mine = ahead.get(interest)
        if mine is None:
            mine = ahead[interest] = _Ahead(groups=interest.usable)
        if wanted is None or workload in wanted:
            yield waiter, _before(mine, ahead)
        if waiter.bar is None:
            mine.count += 1


def position(planner: Planner, workload: str) -> int:
    """Return how many before *workload*, which waits, want the same machines."""
    ahead: Counter[Interest] = Counter()
    for name in takewhile(workload.__ne__, planner.line):
        waiter = planner.waiters[name]
        if waiter.bar is None:
            ahead[waiter.interest] += 1
    mine = planner.waiters[workload].interest.usable
    return sum(
        count for other, count in ahead.items() if not mine.isdisjoint(other.usable)
    )


def _before(mine: _Ahead, ahead: dict[Interest, _Ahead]) -> int:
    return sum(
        other.count
        for other in ahead.values()
        if not mine.groups.isdisjoint(other.groups)
    )
