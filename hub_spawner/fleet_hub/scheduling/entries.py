"""One machine, with what is held and promised of it, and when it has room."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from fleet_contracts.devices import held_here
from fleet_contracts.reasons import Explanation
from fleet_hub.scheduling.choice import SLACK_SECONDS
from fleet_hub.scheduling.foreign import Outside, amounts_of, used_outside
from fleet_hub.scheduling.profile import (
    FOREVER,
    Claim,
    Hold,
    Segment,
    adjusted,
    earliest,
    segments_of,
)
from fleet_hub.scheduling.signatures import Signature
from fleet_hub.scheduling.snapshot import Allocation, MachineState
from fleet_hub.scheduling.vectors import DISK, Need, Vector, assign, minus, plus


if TYPE_CHECKING:
    from fleet_hub.scheduling.pools import Pool


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
    capacity: Vector = ()
    """What it has when nothing runs."""
    outside: tuple[Outside, ...] = ()
    """Devices that it has, and that others than the fleet use."""
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
    moment: object = field(default_factory=object)
    """Another one after each change of anything but promises."""

    bucket: Vector = field(init=False)
    """What is free, without the disk: that differs from machine to machine.

    Behind it stands what others use: whose reasons differ are not equal.
    """

    def __post_init__(self) -> None:
        """Find its equals."""
        self.bucket = self._equal_to()

    def still(self) -> Entry:
        """Return a copy that does not change any more, for explanations."""
        return Entry(
            machine=self.machine,
            signature=self.signature,
            free=self.free,
            capacity=self.capacity,
            outside=self.outside,
            trouble=self.trouble,
            allocations=dict(self.allocations),
            holds=dict(self.holds),
            moment=self.moment,
        )

    def amounts(self, allocation: Allocation) -> Vector:
        """Return what *allocation* is of this machine, as its facts are now."""
        facts = self.machine.facts
        held = held_here(
            allocation.resources,
            os=facts.os,
            driver=allocation.driver,
            fenced=facts.metal_fenced,
        )
        return self.signature.amounts(held, facts)

    def hold(self, allocation: Allocation) -> None:
        """Take what *allocation* holds."""
        self.release(allocation.workload)
        amounts = self.amounts(allocation)
        ends_by = allocation.ends_by
        end = FOREVER if ends_by is None else ends_by + SLACK_SECONDS
        self.allocations[allocation.workload] = allocation
        hold = self.holds[allocation.workload] = Hold(end, amounts)
        insort(self.ends, hold)
        self._adjust(-math.inf, end, tuple([-amount for amount in amounts]))
        self._change(minus(self.free, amounts))
        self._look_outside()

    def retell(self, allocation: Allocation) -> None:
        """Know other things of *allocation* than what it holds: see ``is_same_hold``."""
        self.moment = object()
        self.allocations[allocation.workload] = allocation

    def release(self, workload: str) -> None:
        """Give back what *workload* holds, if it holds anything."""
        hold = self.holds.pop(workload, None)
        if hold is not None:
            del self.allocations[workload]
            del self.ends[bisect_left(self.ends, hold)]
            self._adjust(-math.inf, hold.end, hold.amounts)
            self._change(plus(self.free, hold.amounts))
            self._look_outside()

    def recount(self) -> None:
        """Work out again what is free, after the machine's own facts changed."""
        free = self.capacity = self.signature.capacity(self.machine.facts)
        for workload, allocation in self.allocations.items():
            amounts = self.amounts(allocation)
            self.holds[workload] = self.holds[workload]._replace(amounts=amounts)
            free = minus(free, amounts)
        self.ends = sorted(self.holds.values())
        self.segments = None
        self.free = free
        self.moment = object()
        self.outside = used_outside(
            self.machine, self.signature, self.allocations.values()
        )
        if self.outside:
            self.free = minus(free, amounts_of(self.outside, len(free)))
        self._shift()

    def claim(self, workload: str, claim: Claim) -> None:
        """Promise *claim* to *workload*."""
        self.unclaim(workload)
        self.claims[workload] = claim
        self._adjust(claim.start, claim.end, claim.taken)
        self.touch()

    def unclaim(self, workload: str) -> Claim | None:
        """Take back what was promised to *workload*."""
        claim = self.claims.pop(workload, None)
        if claim is not None:
            self._adjust(claim.start, claim.end, claim.amounts)
            self.touch()
        return claim

    def room(self, now: float) -> list[Segment]:
        """Return what is free from *now* on, beside all holds and promises."""
        segments = self.segments
        if (
            segments is None
            or segments[0][0] > now
            or (len(segments) > 1 and segments[1][0] <= now)
        ):
            claims = self.claims.values()
            segments = segments_of(self.free, self.ends, claims, now)
            self.segments = segments
        return segments

    def room_without(self, workloads: Iterable[str], now: float) -> list[Segment]:
        """Return what is free from *now* on, beside all promises not to *workloads*."""
        room = self.room(now)
        for name in workloads:
            claim = self.claims.get(name)
            if claim is not None and claim.end > now:
                room = adjusted(room, claim.start, claim.end, claim.amounts)
        return room

    def first(
        self,
        needs: tuple[Need, ...],
        seconds: float,
        now: float,
        *,
        without: Iterable[str] = (),
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

    def more_from(self, now: float) -> float:
        """Return a time before which no more is free than there is *now*."""
        ends = self.ends
        if ends and ends[0].end <= now:
            # Who is overdue holds for ever: see ``segments_of``.
            ends = ends[bisect_right(ends, now, key=lambda hold: hold.end) :]
        first = ends[0].end if ends else FOREVER
        for claim in self.claims.values():
            if now < claim.end < first:
                first = claim.end
        return first

    def is_open(self, disk_bytes: int) -> bool:
        """Return whether what is free is free for good, with enough disk."""
        return not self.claims and (not disk_bytes or self.free[DISK] >= disk_bytes)

    def observe(self, machine: MachineState) -> None:
        """Follow what was seen of it, because of which nobody starts or waits."""
        self.moment = object()
        self.machine = machine

    def judge(self, trouble: Explanation | None) -> None:
        """Say why it takes nothing; None: it does."""
        if trouble != self.trouble:
            self.moment = object()
        self.trouble = trouble

    def touch(self) -> None:
        """Let every horizon look at this machine again."""
        for pool in self.pools:
            pool.touch(self.machine.name)

    def _adjust(self, start: float, end: float, amounts: Vector) -> None:
        """Follow a change of what is free from *start* to *end*."""
        if self.segments is not None:
            # A hold that is overdue by now is there for ever: see ``segments_of``.
            is_over = end <= self.segments[0][0]
            if not is_over:
                self.segments = adjusted(self.segments, start, end, amounts)
            elif start == -math.inf:
                self.segments = adjusted(self.segments, start, FOREVER, amounts)

    def _look_outside(self) -> None:
        """Follow that what others use came to be held by us, or was given back."""
        if self.machine.foreign:
            self.recount()

    def _change(self, free: Vector) -> None:
        self.moment = object()
        self.free = free
        self._shift()

    def _shift(self) -> None:
        before, self.bucket = self.bucket, self._equal_to()
        for pool in self.pools:
            pool.shift(self, before)

    def _equal_to(self) -> Vector:
        free = self.free
        bare = (*free[:DISK], 0, *free[DISK + 1 :])
        return (*bare, *chain.from_iterable(self.outside)) if self.outside else bare
