"""How many machines would serve a request, and how many of them at once?

Machines with equal amounts free are counted together.  Those that may differ from their
equals are asked one by one: the asker's own, those that said no to it, and those of
which something is promised to others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


class Prospects:
    """What a fleet has for other requests in the place of a waiter's own.

    True only as long as nothing changes in the fleet.
    """

    def __init__(self, planner: Planner, waiter: Waiter) -> None:
        """Find the machines that are to be asked one by one."""
        waiting, entries = waiter.waiting, planner.fleet.entries
        self._planner = planner
        self._waiter = waiter
        self._user = waiting.principal.name
        self._pin = waiting.pin
        self._rejected_by = waiting.rejected_by
        self._promised = planner.promises.machines()
        own = (
            name
            for group in planner.fleet.groups.values()
            for name in group.owners.get(self._user, ())
        )
        apart = {*own, *(waiting.rejected_by.keys() & entries.keys())}
        self._apart = [entries[name] for name in sorted(apart)]
        """Of whom another answer may come than of their equals, busy or not."""
        self._singles: dict[tuple[str, Vector], list[Entry]] = {}
        """Those, and those of which something is promised, by what is free of them."""
        for name in apart | (self._promised & entries.keys()):
            entry = entries[name]
            if entry.trouble is None:
                key = entry.signature.key, entry.bucket
                self._singles.setdefault(key, []).append(entry)

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
        """Yield how many machines would serve, busy or not, a few at a time."""
        fleet, pin = self._planner.fleet, self._pin
        if pin is not None:
            entry = fleet.entries.get(pin.machine)
            yield int(entry is not None and self._serves(entry, request))
            return
        for key, group in fleet.groups.items():
            if self._outlook(group, request).needs:
                apart = [it for it in self._apart if it.signature.key == key]
                yield _large(group, request) - _count_large(apart, request)
        for entry in self._apart:
            yield int(self._serves(entry, request))

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
        disk = request.chosen.disk_bytes
        left: list[tuple[Entry, Outlook]] = []
        for key, group in fleet.groups.items():
            pool, outlook = group.pool, self._outlook(group, request)
            own = outlook
            if self._user in group.owners:
                own = self._outlook(group, request, is_own=True)
            needs, own_needs = _bare(outlook), _bare(own)
            for bucket, equal in pool.buckets.items():
                others_fit = _fits(bucket, needs)
                if not others_fit and (own is outlook or not _fits(bucket, own_needs)):
                    # Where it does not even fit beside what is held no promise matters.
                    continue
                singles = self._singles.get((key, bucket), ())
                left += (
                    (entry, own if entry.machine.owner == self._user else outlook)
                    for entry in singles
                )
                count = len(equal) - len(singles) if others_fit else 0
                if disk and count:
                    count = pool.disks.count_free(bucket, equal, disk) - sum(
                        entry.free[DISK] >= disk for entry in singles
                    )
                yield count
        for entry, outlook in left:
            yield int(self._has_room(entry, outlook, request))

    def _serves(self, entry: Entry, request: Request) -> bool:
        """Return whether a machine would serve *request*, busy or not."""
        return (
            entry.machine.name not in self._rejected_by
            and bool(self._outlook_on(entry, request).needs)
            and _is_large(entry, request)
        )

    def _has_room(self, entry: Entry, outlook: Outlook, request: Request) -> bool:
        """Return whether a machine has room now that is promised to nobody else."""
        if not outlook.placeable or entry.machine.name in self._rejected_by:
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


def _is_large(entry: Entry, request: Request) -> bool:
    """Return whether a machine's whole disk is enough."""
    free = entry.machine.facts.disk_free_bytes or 0
    return free >= request.chosen.disk_bytes
