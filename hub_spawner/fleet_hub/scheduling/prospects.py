"""How many machines would serve a request, and how many of them at once?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import filterfalse
from typing import NamedTuple

from fleet_contracts.catalog import Relation
from fleet_contracts.trust import relation_of
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.interests import Group
from fleet_hub.scheduling.outlooks import DRIVER_ORDER, Outlook, look
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.vectors import DISK, assign, without_disk
from fleet_hub.scheduling.waiter import Waiter


class Prospect(NamedTuple):
    """How many machines would serve a request, and how many of them now."""

    machines: int
    free_now: int


def prospect_of(planner: Planner, waiter: Waiter, request: Request) -> Prospect:
    """Return how many machines would serve *request* in the place of *waiter*'s own."""
    asked = _asked(planner, waiter, request)
    return Prospect(machines=sum(_serving(asked)), free_now=sum(_free(asked)))


def would_serve(planner: Planner, waiter: Waiter, request: Request) -> bool:
    """Return whether any machine would serve *request*, busy or not."""
    return any(_serving(_asked(planner, waiter, request)))


def would_start(planner: Planner, waiter: Waiter, request: Request) -> bool:
    """Return whether any machine has room for *request* now."""
    return any(_free(_asked(planner, waiter, request)))


class _Asked(NamedTuple):
    """One request, in the place of a waiter's own."""

    planner: Planner
    waiter: Waiter
    request: Request
    apart: frozenset[str]
    """Machines of which equal amounts do not mean equal answers."""

    def outlook(self, group: Group, *, own: bool) -> Outlook:
        """Return what the group's machines answer, the asker's own or the others."""
        waiting, sharing = self.waiter.waiting, group.signature.sharing
        relation = relation_of(
            waiting.principal, owner="", users=sharing.users, groups=sharing.groups
        )
        relation = Relation.OWNER if own else relation
        chosen = self.request.chosen
        if self.planner.catalog.class_named(chosen.name) is chosen:
            return self.planner.fleet.outlook(
                group, self.request, relation, waiting.pin
            )
        # No class is like this: nobody comes back with it.
        return look(
            group.signature,
            self.request,
            relation,
            DRIVER_ORDER if waiting.pin is None else (waiting.pin.driver,),
            self.planner.fleet.context.trust,
        )

    def sides(self, group: Group) -> Iterator[tuple[Outlook, _Some]]:
        """Yield what the asker's own machines answer, and the others, with which."""
        waiting = self.waiter.waiting
        own = group.owners.get(waiting.principal.name, set())
        if own:
            yield self.outlook(group, own=True), _Some(own, is_within=True)
        if len(own) < len(group.pool.entries) + len(group.troubled):
            yield self.outlook(group, own=False), _Some(own, is_within=False)

    def is_free(self, name: str, outlook: Outlook) -> bool:
        """Return whether a machine has room that is promised to nobody else."""
        entry = self.planner.fleet.entries[name]
        waiting = self.waiter.waiting
        is_elsewhere = waiting.pin is not None and waiting.pin.machine != name
        if is_elsewhere or name in waiting.rejected_by:
            return False
        now = self.planner.now
        found = entry.first(
            outlook.needs,
            self.request.hold_seconds,
            now,
            without=(self.waiter.workload,),
        )
        return found is not None and found.start <= now


class _Some(NamedTuple):
    """Some machines of a group: those among *names*, or those that are not."""

    names: set[str]
    is_within: bool

    def of(self, names: list[str]) -> list[str]:
        """Return those of *names* that are meant."""
        if not self.names:
            return [] if self.is_within else names
        pick = filter if self.is_within else filterfalse
        return list(pick(self.names.__contains__, names))


def _asked(planner: Planner, waiter: Waiter, request: Request) -> _Asked:
    waiting = waiter.waiting
    apart = frozenset(planner.promises.machines() | waiting.rejected_by.keys())
    if waiting.pin is not None:
        # Who may go to one machine only has nothing to count.
        apart = frozenset(planner.fleet.entries)
    return _Asked(planner, waiter, request, apart)


def _serving(asked: _Asked) -> Iterator[int]:
    """Yield how many machines would serve, group by group, busy or not."""
    waiting, disk = asked.waiter.waiting, asked.request.chosen.disk_bytes
    entries, pin = asked.planner.fleet.entries, asked.waiter.waiting.pin
    is_plain = not (pin or waiting.rejected_by or disk)
    for group in asked.planner.fleet.groups.values():
        for outlook, some in asked.sides(group):
            if not outlook.needs:
                continue
            if is_plain:
                everybody = len(group.pool.entries) + len(group.troubled)
                own = len(some.names)
                yield own if some.is_within else everybody - own
                continue
            names = some.of([*group.pool.entries, *group.troubled])
            yield sum(
                (pin is None or pin.machine == name)
                and name not in waiting.rejected_by
                and (entries[name].machine.facts.disk_free_bytes or 0) >= disk
                for name in names
            )


def _free(asked: _Asked) -> Iterator[int]:
    """Yield how many machines have room now, those that are quickly counted first."""
    disk, entries = asked.request.chosen.disk_bytes, asked.planner.fleet.entries
    left: list[tuple[str, Outlook]] = []
    for group in asked.planner.fleet.groups.values():
        for outlook, some in asked.sides(group):
            if not outlook.placeable:
                continue
            needs = [without_disk(need) for need in outlook.needs]
            for bucket, equal in group.pool.buckets.items():
                if all(assign(bucket, need) is None for need in needs):
                    # Where it does not even fit beside what is held no promise matters.
                    continue
                names = some.of(equal)
                if disk:
                    names = [name for name in names if entries[name].free[DISK] >= disk]
                alone = asked.apart.intersection(names)
                left += ((name, outlook) for name in alone)
                yield len(names) - len(alone)
    for name, outlook in left:
        yield int(asked.is_free(name, outlook))
