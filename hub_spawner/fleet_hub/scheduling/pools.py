"""Machines of one signature, arranged so that the best one is found without a scan.

A pool holds the machines that take work at the moment.  Buckets of equal free amounts
find the tightest fit now; a horizon for each need finds the first to have room later.
Both give what a full scan would give: nothing is sampled.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from fleet_hub.scheduling.disks import Disks
from fleet_hub.scheduling.entries import Entry
from fleet_hub.scheduling.profile import FOREVER
from fleet_hub.scheduling.vectors import (
    CPU,
    DISK,
    MEMORY,
    Need,
    Vector,
    assign,
    devices_left,
    largest_taken,
    without_disk,
)


_FEW: Final = 30
"""So many machines are looked at at once, and a quarter of a large pool; of more a
bound for each is quicker found."""
Score = tuple[int, ...]
"""What would be left; the least is the tightest fit."""


class Horizon:
    """When each machine of a pool first has room for one need, the soonest first.

    A machine is looked at only when its turn could have come: until then a bound that
    is quickly found stands for it.
    """

    def __init__(self, pool: Pool, needs: tuple[Need, ...], seconds: float) -> None:
        """Begin with every machine of *pool* unknown."""
        self.pool = pool
        self.needs = needs
        self.seconds = seconds
        self._known: dict[str, float] = {}
        self._soonest: list[tuple[float, str]] = []
        self._unknown = set(pool.entries)
        self._disk = min(need.fixed[DISK] for need in needs)
        self._guessed: set[str] = set()
        """Of whom only a bound is known: there is no room before it."""
        self._last: tuple[float, tuple[float, str] | None] | None = None
        """When was asked last, and what the answer was: true until a machine changes."""

    def touch(self, name: str) -> None:
        """Forget what was known of machine *name*."""
        self._unknown.add(name)
        self._last = None

    def forget_all(self) -> None:
        """Forget every time: the clock went back."""
        self._last = None
        self._known.clear()
        self._soonest.clear()
        self._guessed.clear()
        self._unknown = set(self.pool.entries)

    def forget(self, name: str) -> None:
        """The machine left the pool."""
        self._last = None
        self._unknown.discard(name)
        self._guessed.discard(name)
        self._known.pop(name, None)

    def start_on(self, name: str, now: float) -> float:
        """Return when there is room on machine *name*."""
        known = self._known.get(name, 0.0)
        if name in self._unknown or name in self._guessed or known <= now:
            return self._look(name, now)
        return known

    def soonest(
        self, now: float, excluded: Collection[str] = ()
    ) -> tuple[float, str] | None:
        """Return the first start and its machine; of equal ones the first by name.

        What fits now fits now, however long it has.
        """
        if excluded:
            return self._look_for(now, excluded)
        if self._last is None or self._last[0] != now:
            # Who starts is asked for twice: when, and where best.
            self._last = now, self._look_for(now, excluded)
        return self._last[1]

    def _look_for(
        self, now: float, excluded: Collection[str]
    ) -> tuple[float, str] | None:
        if len(self._unknown) > max(_FEW, len(self.pool.entries) // 4):
            name = self._one_now(now, excluded)
            if name is not None:
                return now, name
            self._guess_all(now)
        return self._soonest_known(now, excluded)

    def _soonest_known(
        self, now: float, excluded: Collection[str]
    ) -> tuple[float, str] | None:
        for name in tuple(self._unknown):
            self._look(name, now)
        known, entries, soonest = self._known, self.pool.entries, self._soonest
        passed: list[tuple[float, str]] = []
        found: tuple[float, str] | None = None
        while soonest and found is None:
            start, name = soonest[0]
            if known.get(name) != start:
                heapq.heappop(soonest)
            elif start == FOREVER:
                break
            elif name in excluded:
                passed.append(heapq.heappop(soonest))
            elif (
                start > now
                and name not in self._guessed
                and not (
                    # Who is overdue holds for ever, whatever was known before.
                    (ends := entries[name].ends) and ends[0].end <= now
                )
            ):
                found = start, name
            elif self._look(name, now) <= max(start, now):
                # Otherwise that was a bound, or it fits no longer.
                found = max(start, now), name
        for item in passed:
            heapq.heappush(soonest, item)
        return found

    def _one_now(self, now: float, excluded: Collection[str]) -> str | None:
        """Return the first machine by name that has room now; None: nobody knows yet.

        Where one has, nothing need be known of the others.
        """
        buckets = self.pool.buckets
        fitting = [buckets[bucket] for _, bucket in self.pool.fitting(self.needs)]
        if not fitting:
            return None
        first = min([names[0] for names in fitting])
        if first not in excluded and self._look(first, now) <= now:
            return first
        by_name = (name for name in heapq.merge(*fitting) if name not in excluded)
        for name in islice(by_name, _FEW):
            if self._look(name, now) <= now:
                return name
        return None

    def _guess_all(self, now: float) -> None:
        """Begin anew with a bound for each machine: there is no room there before it."""
        entries, disk = self.pool.entries, self._disk
        fitting = {bucket for _, bucket in self.pool.fitting(self.needs)}
        bounds: dict[str, float] = {}
        for bucket, names in self.pool.buckets.items():
            if bucket not in fitting:
                bounds |= {name: entries[name].more_from(now) for name in names}
                continue
            bounds |= dict.fromkeys(names, now)
            if disk:
                small = [name for name in names if entries[name].free[DISK] < disk]
                bounds |= {name: entries[name].more_from(now) for name in small}
        self._known = bounds
        self._guessed = set(bounds)
        self._soonest = [(start, name) for name, start in bounds.items()]
        heapq.heapify(self._soonest)
        self._unknown.clear()

    def _look(self, name: str, now: float) -> float:
        self._unknown.discard(name)
        self._guessed.discard(name)
        start = self.pool.entries[name].start(self.needs, self.seconds, now)
        known = self._known.get(name)
        if known is None or (start > now and known != start) or known > now >= start:
            self._known[name] = start
            heapq.heappush(self._soonest, (start, name))
        return start


class Pool:
    """The machines of one signature, or those of one owner in it, that take work."""

    def __init__(self) -> None:
        """Begin without machines."""
        self.entries: dict[str, Entry] = {}
        self.buckets: dict[Vector, list[str]] = {}
        self.disks = Disks(self.entries)
        self._horizons: dict[tuple[tuple[Need, ...], float], Horizon] = {}
        self._rankings: dict[tuple[Need, ...], Ranking] = {}

    def add(self, entry: Entry) -> None:
        """Let *entry* take work."""
        name = entry.machine.name
        self.entries[name] = entry
        self._enter(entry.bucket, name)
        self.touch(name)

    def remove(self, entry: Entry) -> None:
        """Let *entry* take no work."""
        name = entry.machine.name
        del self.entries[name]
        self._leave(entry.bucket, name)
        for horizon in self._horizons.values():
            horizon.forget(name)

    def shift(self, entry: Entry, before: Vector) -> None:
        """Follow a change of what is free on *entry*."""
        name = entry.machine.name
        self._leave(before, name)
        self._enter(entry.bucket, name)
        self.touch(name)

    def touch(self, name: str) -> None:
        """Let every horizon look at machine *name* again."""
        for horizon in self._horizons.values():
            horizon.touch(name)

    def forget_times(self) -> None:
        """Let every horizon look at every machine again."""
        for horizon in self._horizons.values():
            horizon.forget_all()

    def horizon(self, needs: tuple[Need, ...], seconds: float) -> Horizon:
        """Return the horizon for *needs*, which each last *seconds*."""
        key = (needs, seconds)
        if key not in self._horizons:
            self._horizons[key] = Horizon(self, needs, seconds)
        return self._horizons[key]

    def tightest(self, needs: tuple[Need, ...]) -> Iterator[tuple[Score, str]]:
        """Yield the machines with enough free now, the tightest fit first.

        Neither the disk nor promises are looked at.
        """
        for score, bucket in self.fitting(needs):
            for name in self.buckets[bucket]:
                yield score, name

    def fitting(self, needs: tuple[Need, ...]) -> Sequence[tuple[Score, Vector]]:
        """Return the buckets into which one of *needs* fits, the tightest fit first."""
        found = self._rankings.get(needs)
        if found is None:
            found = self._rankings[needs] = Ranking(needs, self.buckets)
        return found.ranked

    def _enter(self, bucket: Vector, name: str) -> None:
        self.disks.changed(bucket, name)
        if bucket in self.buckets:
            insort(self.buckets[bucket], name)
            return
        self.buckets[bucket] = [name]
        for ranking in self._rankings.values():
            ranking.add(bucket)

    def _leave(self, bucket: Vector, name: str) -> None:
        self.disks.changed(bucket, name)
        names = self.buckets[bucket]
        del names[bisect_left(names, name)]
        if not names:
            del self.buckets[bucket]
            self.disks.forget(bucket)
            for ranking in self._rankings.values():
                ranking.remove(bucket)


class Ranking:
    """The buckets into which one need fits, the tightest fit first."""

    def __init__(self, needs: tuple[Need, ...], buckets: Iterable[Vector]) -> None:
        """Rank *buckets*."""
        # The disk is asked of each machine, not of a bucket.
        self._needs = [without_disk(need) for need in needs]
        self.ranked: list[tuple[Score, Vector]] = []
        for bucket in buckets:
            self.add(bucket)

    def add(self, bucket: Vector) -> None:
        """Rank one more bucket, if the need fits into it."""
        score = self._score(bucket)
        if score is not None:
            insort(self.ranked, (score, bucket))

    def remove(self, bucket: Vector) -> None:
        """Rank *bucket* no more."""
        score = self._score(bucket)
        if score is not None:
            del self.ranked[bisect_left(self.ranked, (score, bucket))]

    def _score(self, bucket: Vector) -> Score | None:
        for need in self._needs:
            taken = assign(bucket, need)
            if taken is not None:
                return fit_score(bucket, need, taken)
        return None


def fit_score(free: Vector, need: Need, taken: Vector) -> Score:
    """Return what would be left, the scarcest first: the least is the tightest fit.

    Before that comes how large the devices are: the small ones serve whoever can do
    with them, on whichever machine they are.
    """
    return (
        largest_taken(need, taken),
        devices_left(free, need),
        free[CPU] - need.fixed[CPU],
        free[MEMORY] - need.fixed[MEMORY],
    )
