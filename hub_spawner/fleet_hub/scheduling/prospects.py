"""How many machines would serve a request, and how many of them at once?

Machines with equal amounts free are counted together.  Those of which something is
promised to others may differ from their equals, and are asked one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from fleet_contracts.catalog import Relation
from fleet_contracts.trust import relation_of
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.entries import Entry
from fleet_hub.scheduling.interests import Group
from fleet_hub.scheduling.outlooks import Outlook
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.vectors import DISK, Need, Vector, assign, without_disk
from fleet_hub.scheduling.waiter import Waiter


class Prospect(NamedTuple):
    """How many machines would serve a request, and how many of them now."""

    machines: int
    free_now: int


class _Side(NamedTuple):
    """Machines of one group that answer alike."""

    group: Group
    outlook: Outlook
    is_own: bool | None
    """Only the asker's own, or only the others; None: that makes no difference."""


class Prospects:
    """What a fleet has for other requests in the place of a waiter's own.

    True only as long as nothing changes in the fleet.
    """

    def __init__(self, planner: Planner, waiter: Waiter) -> None:
        """Find the machines that are told apart from their equals."""
        waiting, entries = waiter.waiting, planner.fleet.entries
        self._planner = planner
        self._waiter = waiter
        self._user = waiting.principal.name
        self._pin = waiting.pin
        self._rejected = [
            entries[name]
            for name in sorted(waiting.rejected_by.keys() & entries.keys())
        ]
        """They said no, and are asked no more."""
        self._singles: dict[tuple[str, Vector], list[Entry]] = {}
        """Those, and those of which something is promised, by what is free of them."""
        apart = planner.promises.machines() | waiting.rejected_by.keys()
        for name in apart & entries.keys():
            entry = entries[name]
            if entry.trouble is None:
                key = entry.signature.key, entry.bucket
                self._singles.setdefault(key, []).append(entry)
        self._own: dict[str, dict[Vector, list[Entry]]] = {}
        """The asker's own machines by group, where that matters."""

    def of(self, request: Request) -> Prospect:
        """Return how many machines would serve *request*, and how many of them now."""
        return Prospect(
            machines=sum(self._serving(request)), free_now=sum(self._free(request))
        )

    def would_serve(self, request: Request) -> bool:
        """Return whether any machine would serve *request*, busy or not."""
        return any(self._serving(request))

    def would_start(self, request: Request) -> bool:
        """Return whether any machine has room for *request* now."""
        return any(self._free(request))

    def _serving(self, request: Request) -> Iterator[int]:
        """Yield how many machines would serve, busy or not, group by group."""
        fleet, pin = self._planner.fleet, self._pin
        if pin is not None:
            entry = fleet.entries.get(pin.machine)
            yield int(
                entry is not None
                and entry not in self._rejected
                and bool(self._outlook_on(entry, request).needs)
                and _is_large(entry, request)
            )
            return
        for side in self._sides(request):
            if side.outlook.needs:
                asked_no_more = [it for it in self._rejected if self._is_of(it, side)]
                yield self._large(side, request) - _count_large(asked_no_more, request)

    def _free(self, request: Request) -> Iterator[int]:
        """Yield how many machines have room now, those that are quickly counted first."""
        fleet, pin = self._planner.fleet, self._pin
        if pin is not None:
            # Who may go to one machine only has nothing to count.
            entry = fleet.entries.get(pin.machine)
            yield int(
                entry is not None
                and entry.trouble is None
                and self._has_room(entry, self._outlook_on(entry, request), request)
            )
            return
        left: list[tuple[Entry, Outlook]] = []
        for side in self._sides(request):
            needs = _bare(side.outlook)
            for bucket in side.group.pool.buckets if needs else ():
                # Where it does not even fit beside what is held no promise matters.
                if _fits(bucket, needs):
                    singles = self._singles.get((side.group.signature.key, bucket), ())
                    apart = [entry for entry in singles if self._is_of(entry, side)]
                    left += ((entry, side.outlook) for entry in apart)
                    yield self._open(side, bucket, request) - _count_free(
                        apart, request
                    )
        for entry, outlook in left:
            yield int(self._has_room(entry, outlook, request))

    def _sides(self, request: Request) -> Iterator[_Side]:
        """Yield what all machines answer to *request*, the asker's own told apart."""
        for group in self._planner.fleet.groups.values():
            if self._user not in group.owners:
                yield _Side(group, self._outlook(group, request), None)
                continue
            own = self._outlook(group, request, is_own=True)
            if len(group.owners) == 1:
                yield _Side(group, own, None)
                continue
            others = self._outlook(group, request)
            if own == others:
                yield _Side(group, others, None)
            else:
                yield _Side(group, own, is_own=True)
                yield _Side(group, others, is_own=False)

    def _is_of(self, entry: Entry, side: _Side) -> bool:
        is_own = entry.machine.owner == self._user
        return entry.signature.key == side.group.signature.key and side.is_own in {
            None,
            is_own,
        }

    def _large(self, side: _Side, request: Request) -> int:
        """Return how many machines of *side* have such a disk, troubled ones included."""
        if side.is_own is None:
            return _large(side.group, request)
        names = side.group.owners[self._user]
        entries = self._planner.fleet.entries
        own = _count_large([entries[name] for name in names], request)
        return own if side.is_own else _large(side.group, request) - own

    def _open(self, side: _Side, bucket: Vector, request: Request) -> int:
        """Return how many machines of *side* in *bucket* have the disk, promises aside."""
        names, disk = side.group.pool.buckets[bucket], request.chosen.disk_bytes
        own = 0
        if side.is_own is not None:
            own = _count_free(self._own_in(side.group).get(bucket, ()), request)
        if side.is_own:
            return own
        if not disk:
            return len(names) - own
        return side.group.pool.disks.count_free(bucket, names, disk) - own

    def _own_in(self, group: Group) -> dict[Vector, list[Entry]]:
        """Return the asker's own machines that take work, by what is free of them."""
        key = group.signature.key
        if key not in self._own:
            found = self._own[key] = {}
            for name in group.owners[self._user]:
                entry = self._planner.fleet.entries[name]
                if entry.trouble is None:
                    found.setdefault(entry.bucket, []).append(entry)
        return self._own[key]

    def _has_room(self, entry: Entry, outlook: Outlook, request: Request) -> bool:
        """Return whether a machine has room now that is promised to nobody else."""
        if not outlook.placeable or entry in self._rejected:
            return False
        found = entry.first(
            outlook.needs,
            request.hold_seconds,
            self._planner.now,
            without=(self._waiter.workload,),
        )
        return found is not None and found.start <= self._planner.now

    def _outlook_on(self, entry: Entry, request: Request) -> Outlook:
        group = self._planner.fleet.groups[entry.signature.key]
        is_own = entry.machine.owner == self._user
        return self._outlook(group, request, is_own=is_own)

    def _outlook(
        self, group: Group, request: Request, *, is_own: bool = False
    ) -> Outlook:
        """Return what the group's machines answer, the asker's own or the others."""
        relation = Relation.OWNER if is_own else self._relation(group)
        fleet, pin = self._planner.fleet, self._pin
        chosen = request.chosen
        if self._planner.catalog.class_named(chosen.name) is chosen:
            return fleet.outlook(group, request, relation, pin)
        # No class is like this.
        return fleet.imagined_outlook(group, request, relation, pin)

    def _relation(self, group: Group) -> Relation:
        sharing = group.signature.sharing
        return relation_of(
            self._waiter.waiting.principal,
            owner="",
            users=sharing.users,
            groups=sharing.groups,
        )


def _bare(outlook: Outlook) -> list[Need]:
    """Return what is needed of equal amounts, if anything can be placed at all."""
    return [without_disk(need) for need in outlook.needs] if outlook.placeable else []


def _fits(free: Vector, needs: Iterable[Need]) -> bool:
    """Return whether any of *needs* fits into what is free."""
    return any(assign(free, need) is not None for need in needs)


def _large(group: Group, request: Request) -> int:
    """Return how many machines of *group* have enough disk, troubled ones included."""
    disk, pool = request.chosen.disk_bytes, group.pool
    if not disk:
        return len(pool.entries) + len(group.troubled)
    return sum(
        pool.disks.count_large(bucket, names, disk)
        for bucket, names in pool.buckets.items()
    ) + _count_large(group.troubled.values(), request)


def _count_large(entries: Iterable[Entry], request: Request) -> int:
    return sum(_is_large(entry, request) for entry in entries)


def _count_free(entries: Collection[Entry], request: Request) -> int:
    disk = request.chosen.disk_bytes
    if not disk:
        return len(entries)
    return sum(entry.free[DISK] >= disk for entry in entries)


def _is_large(entry: Entry, request: Request) -> bool:
    """Return whether a machine's whole disk is enough."""
    free = entry.machine.facts.disk_free_bytes or 0
    return free >= request.chosen.disk_bytes
