"""How many before somebody want the same machines."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.waiter import Waiter


def positions(
    planner: Planner, wanted: Collection[str] | None = None
) -> Iterator[tuple[Waiter, int]]:
    """Yield those *wanted*, or everybody, in line order with their position."""
    names = planner.line if wanted is None else _in_line_order(planner, wanted)
    for name in names:
        yield planner.waiters[name], position(planner, name)


def position(planner: Planner, workload: str) -> int:
    """Return how many before *workload*, which waits, want the same machines.

    Who is kept from every place stands in nobody's way.
    """
    waiter = planner.waiters[workload]
    return planner.crowd.ahead_of(waiter.interest, planner.line.place_of(workload))


def _in_line_order(planner: Planner, wanted: Collection[str]) -> list[str]:
    waiting = [name for name in wanted if name in planner.waiters]
    return sorted(waiting, key=planner.line.place_of)
