"""Whose turn it is by what they have had: the ledger of use, and the line ranked by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fleet_contracts.catalog import Catalog
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.line import RANKED_EVERY_SECONDS, Line
from fleet_hub.scheduling.shares import Ledger, capacity_of, settle
from fleet_hub.scheduling.snapshot import Allocation, Capacity, Ranking, Usage
from fleet_hub.scheduling.waiter import Waiter


class FairUse:
    """Follows what everybody uses, and ranks the line by it once a minute."""

    def __init__(self, catalog: Catalog, fleet: Fleet, line: Line) -> None:
        """Begin with nobody having used anything."""
        self.usage: Mapping[int, Usage] = {}
        """What was used by work that has ended, before this engine began."""
        self._half_life = catalog.shares.half_life_seconds
        self._fleet = fleet
        self._line = line
        self._ledger: Ledger | None = None
        self._capacity: Capacity | None = None
        self._of = -1
        self._ranked_at: float | None = None

    def follow(self, ended: Iterable[Allocation], begun: Iterable[Allocation]) -> None:
        """Count what ended no further, and what began from now on.

        What is only known otherwise than before goes on.
        """
        if self._ledger is None:
            return
        before = {_work(item): item for item in ended}
        for item in begun:
            known = before.pop(_work(item), None)
            if known is None:
                self._ledger.start(item)
            else:
                self._ledger.go_on(known, item)
        for item in before.values():
            self._ledger.end(item)

    def settle(
        self, earlier: Usage | None, allocation: Allocation, until: float
    ) -> Usage:
        """Return *earlier* with *allocation* added, which ends at *until*."""
        return settle(
            earlier,
            allocation,
            until=until,
            capacity=self._whole(),
            half_life_seconds=self._half_life,
        )

    def is_due(self, now: float) -> bool:
        """Whether the line is to be ranked again; a clock that went back says yes."""
        at = self._ranked_at
        return at is None or not at <= now < at + RANKED_EVERY_SECONDS

    def is_overdue(self, now: float) -> bool:
        """Whether that should have been done a while ago."""
        at = self._ranked_at
        return at is None or not at <= now < at + 2 * RANKED_EVERY_SECONDS

    def rank(self, waiters: Iterable[Waiter], now: float) -> None:
        """Give everybody their place anew, by what users have had by now."""
        capacity, ledger = self._whole(), self._ledger
        if ledger is None:
            ledger = self._ledger = self._begin(now, capacity)
        self._ranked_at = now
        everybody = [(item.waiting, item.request) for item in waiters]
        self._line.rank(everybody, capacity, ledger.used(now))

    def restore(self, waiters: Iterable[Waiter], ranking: Ranking, now: float) -> None:
        """Let the line stand as it did, for another minute."""
        self._ranked_at = now
        everybody = [(item.waiting, item.request) for item in waiters]
        self._line.rank(everybody, ranking.capacity, ranking.used)
        self._line.keep(ranking.shares)

    def _whole(self) -> Capacity:
        """Return all that the fleet has; shares are parts of it."""
        if self._capacity is None or self._of != self._fleet.structure:
            self._of = self._fleet.structure
            capacity = capacity_of(
                entry.machine for entry in self._fleet.entries.values()
            )
            if capacity != self._capacity:
                self._capacity, self._ledger = capacity, None
        return self._capacity

    def _begin(self, now: float, capacity: Capacity) -> Ledger:
        ledger = Ledger(
            self.usage, now=now, capacity=capacity, half_life_seconds=self._half_life
        )
        for entry in self._fleet.entries.values():
            for allocation in entry.allocations.values():
                ledger.start(allocation)
        return ledger


def _work(item: Allocation) -> tuple[str, int, float]:
    """Return what is the same as long as one allocation goes on."""
    return item.workload, item.user_id, item.since
