"""Whose turn it is: priority, then fair share, then age.

Within a priority users take turns: whoever has used least for their weight comes
first, and each of their workloads in the line counts before their next one is placed.
A workload that agents keep rejecting yields to the others of its priority.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Final

from fleet_contracts.catalog import Catalog
from fleet_hub.scheduling.shares import (
    ENTRY_SECONDS,
    Capacity,
    asked_rate,
    capacity_of,
    used_by,
    weight_of,
)
from fleet_hub.scheduling.snapshot import Snapshot, Waiting


YIELDS_AFTER: Final = 3
"""Rejections after which a workload yields its turn, and again after as many more."""

_Band = tuple[int, int]


def in_line_order(snapshot: Snapshot) -> tuple[Waiting, ...]:
    """Return the waiting workloads in the order in which they get their turn."""
    capacity = capacity_of(snapshot.machines)
    used = used_by(snapshot, capacity)
    bands: dict[_Band, list[Waiting]] = {}
    for waiting in snapshot.waiting:
        bands.setdefault(_band(waiting, snapshot.catalog), []).append(waiting)
    return tuple(
        waiting
        for band in sorted(bands)
        for waiting in _take_turns(bands[band], snapshot.catalog, capacity, used)
    )


def _band(waiting: Waiting, catalog: Catalog) -> _Band:
    profile = catalog.profile_named(waiting.profile)
    priority = waiting.priority + (profile.priority if profile is not None else 0)
    return -priority, waiting.rejections // YIELDS_AFTER


def _take_turns(
    band: Iterable[Waiting],
    catalog: Catalog,
    capacity: Capacity,
    used: Mapping[int, float],
) -> Iterable[Waiting]:
    queues: dict[int, list[Waiting]] = {}
    for waiting in sorted(band, key=_age, reverse=True):
        queues.setdefault(waiting.principal.user_id, []).append(waiting)
    turns = [
        (used.get(user, 0.0) / _weight(queue[-1], catalog), *_age(queue[-1]), user)
        for user, queue in queues.items()
    ]
    heapq.heapify(turns)
    while turns:
        share, _, _, user = heapq.heappop(turns)
        queue = queues[user]
        waiting = queue.pop()
        yield waiting
        if queue:
            share += _entry(waiting, catalog, capacity)
            heapq.heappush(turns, (share, *_age(queue[-1]), user))


def _age(waiting: Waiting) -> tuple[float, str]:
    return waiting.asked_at, waiting.workload


def _weight(waiting: Waiting, catalog: Catalog) -> float:
    return weight_of(waiting.principal, catalog.shares)


def _entry(waiting: Waiting, catalog: Catalog, capacity: Capacity) -> float:
    """Return what *waiting* counts for its user's next turn."""
    profile = catalog.profile_named(waiting.profile)
    name = waiting.class_name or (profile.classes[0] if profile is not None else "")
    chosen = catalog.class_named(name)
    if chosen is None:
        return 0.0
    return asked_rate(chosen, capacity) * ENTRY_SECONDS / _weight(waiting, catalog)
