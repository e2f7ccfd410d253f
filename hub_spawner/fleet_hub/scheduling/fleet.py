"""All machines, grouped by what makes them interchangeable, and who may use which.

The fleet changes one machine at a time.  What a request could use of it is worked out
once for each kind of asker and kept until the structure changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Final

from fleet_contracts.catalog import Relation
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.entries import Entry, Found
from fleet_hub.scheduling.interests import (
    Group,
    Interest,
    Part,
    View,
    identity_of,
    interest_of,
    relation_to,
)
from fleet_hub.scheduling.kept_answers import KeptAnswers
from fleet_hub.scheduling.outlooks import Outlook, Outlooks
from fleet_hub.scheduling.pools import Horizon, Pool, Score
from fleet_hub.scheduling.profile import FOREVER
from fleet_hub.scheduling.signatures import Signature, signature_of
from fleet_hub.scheduling.snapshot import MachineState, Pin
from fleet_hub.scheduling.trouble import Context, machine_trouble
from fleet_hub.scheduling.vectors import DISK, Need


MOST_RUNNERS_UP: Final = 3


class Fleet:
    """Every machine that is enrolled, and what is held and promised of each."""

    def __init__(self, context: Context) -> None:
        """Begin without machines."""
        self.entries: dict[str, Entry] = {}
        self.groups: dict[str, Group] = {}
        self.context = context
        self.answers = KeptAnswers()
        self.structure = 0
        """Changes when what somebody could use may have changed."""
        self._outlooks = Outlooks(trust=context.trust)
        self._owners: Counter[str] = Counter()
        self._members = False
        """Whether any machine has members: then everybody may differ."""
        self._interests: dict[object, Interest] = {}
        self._shared: dict[object, Interest] = {}
        self._interests_of = 0

    def put(self, machine: MachineState) -> Entry:
        """Add *machine*, or replace what was known of it.

        Promises on it are kept in the same entry; a new entry has none.
        """
        old = self.entries.get(machine.name)
        if old is not None and _alike(old.machine, machine):
            signature = old.signature
        else:
            signature = signature_of(machine)
        if old is not None:
            is_same = signature.key == old.signature.key
            if is_same and old.machine.owner == machine.owner:
                self._refresh(old, machine, signature)
                return old
            self.remove(machine.name)
        capacity = signature.capacity(machine.facts)
        entry = Entry(
            machine=machine, signature=signature, free=capacity, capacity=capacity
        )
        for allocation in machine.held:
            entry.hold(allocation)
        if machine.foreign:
            entry.recount()
        self.entries[machine.name] = entry
        self._join(entry)
        return entry

    def remove(self, name: str) -> Entry:
        """Take a machine out, with everything on it."""
        entry = self.entries.pop(name)
        owner, group = entry.machine.owner, self.groups[entry.signature.key]
        self._leave(entry, group)
        group.owners[owner].discard(name)
        self._owners[owner] -= 1
        if not group.owners[owner]:
            del group.owners[owner]
            group.by_owner.pop(owner, None)
        if not group.owners:
            del self.groups[entry.signature.key]
        self.structure += 1
        return entry

    def forget_times(self) -> None:
        """Look again when there is room anywhere: the clock went back."""
        for group in self.groups.values():
            for pool in (group.pool, *group.by_owner.values()):
                pool.forget_times()

    def judge_trouble(self, name: str) -> None:
        """Look again whether a machine takes work."""
        entry = self.entries[name]
        trouble = machine_trouble(entry.machine, self.context)
        changes = (trouble is None) != (entry.trouble is None)
        group = self.groups[entry.signature.key]
        if changes:
            self._leave(entry, group)
        entry.judge(trouble)
        if changes:
            self._enter(entry, group)

    def interest(
        self, request: Request, principal: Principal, pin: Pin | None
    ) -> Interest:
        """Return what such an asker could use for *request*."""
        if self._interests_of != self.structure:
            self._interests_of = self.structure
            self._interests.clear()
            self._shared.clear()
        where = None if pin is None else (pin.machine, pin.driver)
        is_known = self._owners[principal.name] > 0 or self._members
        who = (principal.name, principal.groups) if is_known else None
        found = self._interests.get((id(request), who, where))
        if found is None:
            parts = tuple(self._parts(request, principal, pin))
            same = (id(request), where, *(identity_of(part) for part in parts))
            found = self._shared.get(same)
            if found is None:
                pools = [self._pool_of(part) for part in parts]
                found = interest_of(request, principal, pin, parts, pools)
                self._shared[same] = found
            self._interests[id(request), who, where] = found
        return found

    def outlook(
        self, group: Group, request: Request, relation: Relation, pin: Pin | None
    ) -> Outlook:
        """Return what *group*'s signature answers to such a request."""
        driver = None if pin is None else pin.driver
        return self._outlooks.of(group.signature, request, relation, driver)

    def imagined_outlook(
        self, group: Group, request: Request, relation: Relation, pin: Pin | None
    ) -> Outlook:
        """Return the same for a request with a class that no catalog has."""
        driver = None if pin is None else pin.driver
        return self._outlooks.of_imagined(group.signature, request, relation, driver)

    def soonest(
        self, interest: Interest, now: float, excluded: Collection[str]
    ) -> Found | None:
        """Return the first opening in the fleet; of equal ones the first by name."""
        if interest.pin is not None:
            return self.on_machine(interest, interest.pin.machine, now)
        best: tuple[float, str, Horizon] | None = None
        for view in interest.views:
            found = view.horizon.soonest(now, excluded)
            if found is not None and (best is None or found < best[:2]):
                best = (*found, view.horizon)
        if best is None:
            return None
        _, name, horizon = best
        return self.entries[name].first(horizon.needs, horizon.seconds, now)

    def best_now(
        self, interest: Interest, now: float, excluded: Collection[str]
    ) -> tuple[Found, Score, tuple[str, ...]] | None:
        """Return the best machine that has room now, its score, and the runners-up."""
        if interest.pin is not None:
            found = self.on_machine(interest, interest.pin.machine, now)
            return None if found is None or found.start > now else (found, (), ())
        fits: list[tuple[Score, str, Horizon, Iterator[tuple[Score, str]]]] = []
        for view in interest.views:
            if fits and view.spared > fits[0][0][0]:
                # Somewhere it fits and others miss less.
                break
            fitting = _fitting(view, now, excluded)
            for score, name in islice(fitting, 1):
                fits.append((score, name, view.horizon, fitting))
        if not fits:
            return None
        fits.sort(key=lambda fit: fit[:2])
        score, name, horizon, more = fits[0]
        best = self.entries[name].first(horizon.needs, horizon.seconds, now)
        others = sorted([fit[:2] for fit in fits[1:]] + [*islice(more, 1)])
        named = dict.fromkeys(other for _, other in others if other != name)
        runners_up = tuple(islice(named, MOST_RUNNERS_UP))
        return None if best is None else (best, score, runners_up)

    def on_machine(
        self,
        interest: Interest,
        name: str,
        now: float,
        *,
        without: Iterable[str] = (),
    ) -> Found | None:
        """Return the first opening on one machine, beside promises not of *without*."""
        entry = self.entries.get(name)
        if entry is None or entry.trouble is not None:
            return None
        needs = self.needs_on(interest, entry)
        return entry.first(needs, interest.request.hold_seconds, now, without=without)

    def start_on(self, interest: Interest, name: str, now: float) -> float:
        """Return when there is room on one machine, beside all promises."""
        entry = self.entries.get(name)
        if entry is None:
            return FOREVER
        if interest.pin is not None:
            found = self.on_machine(interest, name, now)
            return FOREVER if found is None else found.start
        soonest, view_of = FOREVER, interest.view_of
        for pool in entry.pools:
            view = view_of.get(pool)
            if view is not None:
                soonest = min(soonest, view.horizon.start_on(name, now))
        return soonest

    def needs_on(self, interest: Interest, entry: Entry) -> tuple[Need, ...]:
        """Return what the asker would need on this machine; empty: it cannot be."""
        if interest.pin is not None and interest.pin.machine != entry.machine.name:
            return ()
        if interest.pin is None:
            for pool in reversed(entry.pools):
                # An owner's own machines come with what only the owner may do.
                if pool in interest.view_of:
                    return interest.view_of[pool].horizon.needs
            return ()
        outlook = self.outlook_on(interest, entry)
        return outlook.needs if outlook.placeable else ()

    def outlook_on(self, interest: Interest, entry: Entry) -> Outlook:
        """Return what this machine's signature answers to the asker."""
        group = self.groups[entry.signature.key]
        relation = relation_to(interest.principal, group, entry.machine.owner)
        return self.outlook(group, interest.request, relation, interest.pin)

    def _parts(
        self, request: Request, principal: Principal, pin: Pin | None
    ) -> Iterator[Part]:
        if pin is not None:
            entry = self.entries.get(pin.machine)
            if entry is not None:
                group = self.groups[entry.signature.key]
                relation = relation_to(principal, group, entry.machine.owner)
                yield Part(group, self.outlook(group, request, relation, pin))
            return
        name = principal.name
        for _, group in sorted(self.groups.items()):
            relation = relation_to(principal, group, None)
            everyone = self.outlook(group, request, relation, pin)
            if name not in group.owners:
                yield Part(group, everyone)
                continue
            own = self.outlook(group, request, Relation.OWNER, pin)
            if own is everyone:
                yield Part(group, everyone)
                continue
            yield Part(group, own, own=name)
            if len(group.owners) > 1:
                yield Part(group, everyone, others=name)

    def _pool_of(self, part: Part) -> Pool:
        """Return the pool of the machines that *part* is about, and perhaps of more."""
        group, owner = part.group, part.own
        if owner is None:
            return group.pool
        if owner not in group.by_owner:
            group.by_owner[owner] = Pool()
            for name in sorted(group.owners[owner]):
                entry = self.entries[name]
                if entry.trouble is None:
                    entry.pools = (group.pool, group.by_owner[owner])
                    group.by_owner[owner].add(entry)
        return group.by_owner[owner]

    def _refresh(
        self, entry: Entry, machine: MachineState, signature: Signature
    ) -> None:
        """Follow what changed of a machine whose signature stays."""
        entry.machine, entry.signature = machine, signature
        held = {allocation.workload: allocation for allocation in machine.held}
        for workload in entry.allocations.keys() - held.keys():
            entry.release(workload)
        for workload, allocation in held.items():
            if entry.allocations.get(workload) is not allocation:
                entry.hold(allocation)
        entry.recount()
        self.judge_trouble(machine.name)

    def _join(self, entry: Entry) -> None:
        name, owner = entry.machine.name, entry.machine.owner
        group = self.groups.get(entry.signature.key)
        if group is None:
            group = self.groups[entry.signature.key] = Group(signature=entry.signature)
        group.owners.setdefault(owner, set()).add(name)
        self._owners[owner] += 1
        sharing = entry.signature.sharing
        self._members = self._members or bool(sharing.users or sharing.groups)
        self.structure += 1
        entry.judge(machine_trouble(entry.machine, self.context))
        self._enter(entry, group)

    def _enter(self, entry: Entry, group: Group) -> None:
        """Let a machine take work, if nothing troubles it."""
        if entry.trouble is None:
            own = group.by_owner.get(entry.machine.owner)
            entry.pools = (group.pool,) if own is None else (group.pool, own)
            for pool in entry.pools:
                pool.add(entry)
        else:
            group.troubled[entry.machine.name] = entry

    def _leave(self, entry: Entry, group: Group) -> None:
        """Let a machine take no work."""
        for pool in entry.pools:
            pool.remove(entry)
        entry.pools = ()
        group.troubled.pop(entry.machine.name, None)


def _fitting(
    view: View, now: float, excluded: Collection[str]
) -> Iterator[tuple[Score, str]]:
    """Yield the view's machines that have room now, the tightest fit first."""
    horizon = view.horizon
    soonest = horizon.soonest(now, excluded)
    if soonest is None or soonest[0] > now:
        return
    entries, disk = horizon.pool.entries, horizon.needs[0].fixed[DISK]
    for score, name in horizon.pool.tightest(horizon.needs):
        if name not in excluded and (
            entries[name].is_open(disk) or horizon.start_on(name, now) <= now
        ):
            yield (view.spared, *score), name


def _alike(old: MachineState, new: MachineState) -> bool:
    """Return whether both have the same signature for sure, without working it out."""
    return (
        old.facts is new.facts
        and old.labels == new.labels
        and old.sharing == new.sharing
    )
