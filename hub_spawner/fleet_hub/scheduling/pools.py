"""Machines of one signature, arranged so that the best one is found without a scan.

A pool holds the machines that take work at the moment.  Buckets of equal free amounts
find the tightest fit now; a horizon for each need finds the first to have room later.
Both give what a full scan would give: nothing is sampled.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fleet_contracts.reasons import Explanation
from fleet_hub.scheduling.profile import (
    FOREVER,
    Claim,
    Hold,
    Segment,
    earliest,
    segments_of,
)
from fleet_hub.scheduling.signatures import Signature
from fleet_hub.scheduling.snapshot import Allocation, MachineState
from fleet_hub.scheduling.vectors import (
    CPU,
    DISK,
    MEMORY,
    METAL,
    Need,
    Vector,
    assign,
    devices_left,
    minus,
    plus,
)


SLACK_SECONDS: Final = 30.0
"""What may pass between the end of a workload and the news of it."""


Score = tuple[int, ...]
"""What would be left; the least is the tightest fit."""


class Found(NamedTuple):
    """Where and when a need fits, and what it takes."""

    start: float
    machine: str
    need: Need
    amounts: Vector


@dataclass(slots=True, eq=False)
class Entry:
    """One machine, with what is held and promised of it."""

    machine: MachineState
    signature: Signature
    free: Vector
    trouble: Explanation | None = None
    """Why it takes nothing at the moment."""
    allocations: dict[str, Allocation] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    ends: list[Hold] = field(default_factory=list)
    """The holds in the order of their ends."""
    claims: dict[str, Claim] = field(default_factory=dict)
    pools: tuple[Pool, ...] = ()
    segments: list[Segment] | None = None
    """What is free beside all holds and promises, if that was asked since a change."""

    @property
    def bucket(self) -> Vector:
        """What is free, without the disk: that differs from machine to machine."""
        return (*self.free[:DISK], 0, *self.free[DISK + 1 :])

    def hold(self, allocation: Allocation) -> None:
        """Take what *allocation* holds."""
        self.release(allocation.workload)
        amounts = self.signature.amounts(allocation.resources, self.machine.facts)
        ends_by = allocation.ends_by
        end = FOREVER if ends_by is None else ends_by + SLACK_SECONDS
        self.allocations[allocation.workload] = allocation
        hold = self.holds[allocation.workload] = Hold(end, amounts)
        insort(self.ends, hold)
        self._change(minus(self.free, amounts))

    def release(self, workload: str) -> None:
        """Give back what *workload* holds, if it holds anything."""
        hold = self.holds.pop(workload, None)
        if hold is not None:
            del self.allocations[workload]
            del self.ends[bisect_left(self.ends, hold)]
            self._change(plus(self.free, hold.amounts))

    def recount(self) -> None:
        """Work out again what is free, after the machine's own facts changed."""
        facts, free = self.machine.facts, self.signature.capacity(self.machine.facts)
        for workload, allocation in self.allocations.items():
            amounts = self.signature.amounts(allocation.resources, facts)
            self.holds[workload] = self.holds[workload]._replace(amounts=amounts)
            free = minus(free, amounts)
        self.ends = sorted(self.holds.values())
        self._change(free)

    def claim(self, workload: str, claim: Claim) -> None:
        """Promise *claim* to *workload*."""
        self.claims[workload] = claim
        self.touch()

    def unclaim(self, workload: str) -> Claim | None:
        """Take back what was promised to *workload*."""
        claim = self.claims.pop(workload, None)
        self.touch()
        return claim

    def room(self, now: float) -> list[Segment]:
        """Return what is free from *now* on, beside all holds and promises."""
        segments = self.segments
        if segments is None or (len(segments) > 1 and segments[1].start <= now):
            claims = self.claims.values()
            segments = segments_of(self.free, self.ends, claims, now)
            self.segments = segments
        return segments

    def room_without(self, workloads: Container[str], now: float) -> list[Segment]:
        """Return what is free from *now* on, beside all promises not to *workloads*."""
        claims = [claim for name, claim in self.claims.items() if name not in workloads]
        if len(claims) == len(self.claims):
            return self.room(now)
        return segments_of(self.free, self.ends, claims, now)

    def first(
        self,
        needs: tuple[Need, ...],
        seconds: float,
        now: float,
        *,
        without: Container[str] = (),
    ) -> Found | None:
        """Return the first opening of any of *needs*; of equal ones the preferred."""
        best: Found | None = None
        room = self.room_without(without, now)
        for need in needs:
            opening = earliest(room, need, seconds=seconds, now=now)
            if opening is not None and (best is None or opening.start < best.start):
                best = Found(opening.start, self.machine.name, need, opening.amounts)
        return best

    def start(self, needs: tuple[Need, ...], seconds: float, now: float) -> float:
        """Return when any of *needs* first fits; for ever away: it is not known to."""
        if not self.claims:
            free = self.free
            for need in needs:
                if assign(free, need) is not None:
                    return now
        found = self.first(needs, seconds, now)
        return FOREVER if found is None else found.start

    def is_open(self, disk_bytes: int) -> bool:
        """Return whether what is free is free for good, with enough disk."""
        return not self.claims and (not disk_bytes or self.free[DISK] >= disk_bytes)

    def touch(self) -> None:
        """Let every horizon look at this machine again."""
        self.segments = None
        for pool in self.pools:
            pool.touch(self.machine.name)

    def _change(self, free: Vector) -> None:
        before, self.free = self.bucket, free
        self.segments = None
        for pool in self.pools:
            pool.shift(self, before)


class Horizon:
    """When each machine of a pool first has room for one need, the soonest first."""

    def __init__(self, pool: Pool, needs: tuple[Need, ...], seconds: float) -> None:
        """Begin with every machine of *pool* unknown."""
        self.pool = pool
        self.needs = needs
        self.seconds = seconds
        self._known: dict[str, float] = {}
        self._soonest: list[tuple[float, str]] = []
        self._unknown = set(pool.entries)

    def touch(self, name: str) -> None:
        """Forget what was known of machine *name*."""
        self._unknown.add(name)

    def forget(self, name: str) -> None:
        """The machine left the pool."""
        self._unknown.discard(name)
        self._known.pop(name, None)

    def start_on(self, name: str, now: float) -> float:
        """Return when there is room on machine *name*."""
        known = self._known.get(name, 0.0)
        if name in self._unknown or known <= now:
            return self._look(name, now)
        return known

    def soonest(
        self, now: float, excluded: Container[str] = ()
    ) -> tuple[float, str] | None:
        """Return the first start and its machine; of equal ones the first by name.

        What fits now fits now, however long it has.
        """
        if self._unknown:
            for name in sorted(self._unknown):
                self._look(name, now)
        passed: list[tuple[float, str]] = []
        found: tuple[float, str] | None = None
        while self._soonest and found is None:
            start, name = self._soonest[0]
            if self._known.get(name) != start:
                heapq.heappop(self._soonest)
            elif start <= now and self._look(name, now) > now:
                # It fitted when it was last looked at, and does not any more.
                continue
            elif name in excluded:
                passed.append(heapq.heappop(self._soonest))
            elif start == FOREVER:
                break
            else:
                found = max(start, now), name
        for item in passed:
            heapq.heappush(self._soonest, item)
        return found

    def _look(self, name: str, now: float) -> float:
        self._unknown.discard(name)
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
        if needs not in self._rankings:
            self._rankings[needs] = Ranking(needs, self.buckets)
        for score, bucket in self._rankings[needs].ranked:
            for name in self.buckets[bucket]:
                yield score, name

    def _enter(self, bucket: Vector, name: str) -> None:
        if bucket in self.buckets:
            insort(self.buckets[bucket], name)
            return
        self.buckets[bucket] = [name]
        for ranking in self._rankings.values():
            ranking.add(bucket)

    def _leave(self, bucket: Vector, name: str) -> None:
        names = self.buckets[bucket]
        del names[bisect_left(names, name)]
        if not names:
            del self.buckets[bucket]
            for ranking in self._rankings.values():
                ranking.remove(bucket)


class Ranking:
    """The buckets into which one need fits, the tightest fit first."""

    def __init__(self, needs: tuple[Need, ...], buckets: Iterable[Vector]) -> None:
        """Rank *buckets*."""
        # The disk is asked of each machine, not of a bucket.
        self._needs = [
            need._replace(
                fixed=(need.fixed[CPU], need.fixed[MEMORY], 0, need.fixed[METAL])
            )
            for need in needs
        ]
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
            if assign(bucket, need) is not None:
                return fit_score(bucket, need)
        return None


def fit_score(free: Vector, need: Need) -> Score:
    """Return what would be left, the scarcest first: the least is the tightest fit."""
    return (
        devices_left(free, need),
        free[CPU] - need.fixed[CPU],
        free[MEMORY] - need.fixed[MEMORY],
    )
