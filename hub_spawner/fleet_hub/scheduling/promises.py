"""Promises to those who wait: made, moved earlier, kept, and broken with a cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, KeysView, Mapping

from fleet_contracts.causes import Cause
from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_hub.scheduling.entries import Entry, Found
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.interests import Interest
from fleet_hub.scheduling.line import Line, behind_priority
from fleet_hub.scheduling.profile import (
    FOREVER,
    SOMEDAY,
    Claim,
    is_kept,
    opening_at,
    segments_of,
)
from fleet_hub.scheduling.vectors import assign
from fleet_hub.scheduling.waiter import Waiter


class Promises:
    """All promises of one fleet."""

    def __init__(
        self,
        fleet: Fleet,
        line: Line,
        waiters: Mapping[str, Waiter],
        *,
        moved: Callable[[Waiter], None] = lambda waiter: None,
    ) -> None:
        """Begin without promises; *moved* hears of each new start, for ever away too."""
        self._moved = moved
        self._fleet = fleet
        self._line = line
        self._waiters = waiters
        self._promised: dict[str, Waiter] = {}
        self._on: dict[str, set[str]] = {}
        """Who is promised something on each machine."""
        self._behind: Counter[int] = Counter()
        """How many are promised something, by priority."""
        self._kept: dict[str, Waiter] = {}
        """For whom room is kept without a time, by the machine: see ``keeping``."""

    def __len__(self) -> int:
        """Return how many are promised a time."""
        return len(self._promised)

    def make(self, waiter: Waiter, found: Found) -> None:
        """Promise *found* to *waiter*, in place of what it was promised before."""
        self.take_back(waiter)
        end = found.start + waiter.request.hold_seconds
        if found.start >= SOMEDAY:
            end = FOREVER
            self._kept[found.machine] = waiter
        entry = self._fleet.entries[found.machine]
        entry.claim(waiter.workload, Claim(found.start, end, found.amounts))
        waiter.found, waiter.start = found, found.start
        self._promised[waiter.workload] = waiter
        self._on.setdefault(found.machine, set()).add(waiter.workload)
        self._behind[_behind(waiter)] += 1
        self._moved(waiter)

    def on_machine(self, name: str) -> frozenset[str]:
        """Return who is promised something on machine *name*."""
        return frozenset(self._on.get(name, ()))

    def machines(self) -> KeysView[str]:
        """Return the machines of which something is promised, now and later."""
        return self._on.keys()

    def keeper_on(self, name: str) -> Waiter | None:
        """Return for whom machine *name* is kept without a time."""
        return self._kept.get(name)

    def keeper_alike(self, interest: Interest) -> Waiter | None:
        """Return for whom with this interest some machine is kept."""
        kept = self._kept.values()
        return next((it for it in kept if it.interest is interest), None)

    def goes_before(self, waiter: Waiter, other: Waiter | None) -> bool:
        """Return whether *waiter* goes before *other*; before nobody it does."""
        place_of = self._line.place_of
        return other is None or place_of(waiter.workload) < place_of(other.workload)

    def take_back(self, waiter: Waiter) -> str | None:
        """Free what is promised to *waiter*; return the machine that has more now."""
        found, waiter.found, waiter.start = waiter.found, None, FOREVER
        if found is None:
            return None
        del self._promised[waiter.workload]
        if found.start >= SOMEDAY:
            del self._kept[found.machine]
        here = self._on[found.machine]
        here.discard(waiter.workload)
        if not here:
            del self._on[found.machine]
        self._behind[_behind(waiter)] -= 1
        self._moved(waiter)
        entry = self._fleet.entries.get(found.machine)
        if entry is not None:
            entry.unclaim(waiter.workload)
        return found.machine

    def restore(
        self, waiter: Waiter, interest: Interest, now: float, *, stands: bool = False
    ) -> bool:
        """Promise again what *waiter* was promised by an earlier run, if it still holds.

        *stands*: no run has ended, so a machine that is away for a moment keeps it.
        """
        kept = waiter.waiting.reservation
        entry = None if kept is None else self._fleet.entries.get(kept.machine)
        if kept is None or entry is None:
            return False
        needs = self._fleet.needs_on(interest, entry)
        if entry.trouble is not None:
            if not (stands and entry.machine.expected_back):
                return False
            needs = self._fleet.outlook_on(interest, entry).needs
        for need in needs:
            opening = opening_at(
                entry.room(now),
                need,
                start=max(kept.start, now),
                seconds=waiter.request.hold_seconds,
            )
            if need.driver is kept.driver and opening is not None:
                self.make(
                    waiter, Found(kept.start, kept.machine, need, opening.amounts)
                )
                return True
        return False

    def why_not_restored(
        self, waiter: Waiter, interest: Interest, now: float
    ) -> Explanation:
        """Return why what an earlier run promised to *waiter* holds no more."""
        kept = waiter.waiting.reservation
        name = "" if kept is None else kept.machine
        entry = self._fleet.entries.get(name)
        if entry is None or entry.trouble is not None:
            return _cause(entry, name, now)
        if not self._fleet.needs_on(interest, entry):
            outlook = self._fleet.outlook_on(interest, entry)
            unhealthy = outlook.unhealthy if outlook.needs else None
            return broken((unhealthy or outlook.nearest_miss).reason, name)
        return _cause(entry, name, now)

    def why_not_now(self, name: str, now: float) -> Explanation:
        """Return what is to blame if nothing can start now that was to on a machine."""
        return _cause(self._fleet.entries.get(name), name, now)

    def check(self, name: str, now: float) -> list[Waiter]:
        """Drop the promises on machine *name* that lost their ground; return whose.

        What was promised for the earliest time is kept first.
        """
        entry = self._fleet.entries.get(name)
        claims = {
            workload: self._promised[workload] for workload in self._on.get(name, ())
        }
        if entry is None or entry.trouble is not None:
            if entry is not None and entry.machine.expected_back:
                return []
            return self._drop(claims.values(), _cause(entry, name, now))
        kept: list[Claim] = []
        lost: list[Waiter] = []
        for workload in sorted(claims, key=lambda item: (claims[item].start, item)):
            claim, waiter = entry.claims.get(workload), claims[workload]
            if claim is not None and not waiter.is_timed:
                if not _has_it_all(entry, waiter):
                    lost.append(waiter)
                continue
            room = segments_of(entry.free, entry.ends, kept, now)
            if claim is not None and is_kept(room, claim, now):
                kept.append(claim)
            else:
                lost.append(waiter)
        return self._drop(lost, _cause(entry, name, now))

    def sooner_for(
        self, waiter: Waiter, interest: Interest, found: Found | None, now: float
    ) -> tuple[Found | None, list[Waiter]]:
        """Return the first opening beside promises of no lower priority only.

        With it come those lower promises that stand on its machine.
        """
        behind = _behind(waiter)
        if not any(count for other, count in self._behind.items() if other > behind):
            return found, []
        lower: dict[str, list[Waiter]] = {}
        for other in self._promised.values():
            if _behind(other) > behind and other.found is not None:
                lower.setdefault(other.found.machine, []).append(other)
        displaced: list[Waiter] = []
        for name, others in sorted(lower.items()):
            if name in waiter.waiting.rejected_by:
                continue
            without = {other.workload for other in others}
            here = self._fleet.on_machine(interest, name, now, without=without)
            if here is not None and (found is None or here.start < found.start):
                found, displaced = here, others
        return found, displaced

    def displace(
        self, others: Iterable[Waiter], by: Waiter, found: Found, now: float
    ) -> list[Waiter]:
        """Promise *found* to *by* before *others*; return whose promises break by it."""
        machine = self._fleet.entries[found.machine]
        before = [(other, other.found) for other in others]
        for other, _ in before:
            self.take_back(other)
        self.make(by, found)
        lost = []
        for other, kept in sorted(before, key=lambda item: item[0].workload):
            if kept is not None and self._still_fits(machine, other, kept, now):
                self.make(other, kept)
            else:
                other.lost = self._overtaken(other, by, found.machine)
                lost.append(other)
        return lost

    def _overtaken(self, other: Waiter, by: Waiter, machine: str) -> Explanation:
        """Return that *by* comes before *other* there, as far as the latter may know."""
        # What stands in place of a profile's own priority is an admin's word.
        is_put_first = by.waiting.priority > 0
        cause = Cause.PUT_FIRST if is_put_first else Cause.PRIORITY
        owner = by.waiting.principal.name
        is_own = bool(owner) and owner == other.waiting.principal.name
        is_named = is_own or self._fleet.context.names_visible
        who = Holder(
            workload=by.workload, owner=owner if is_named else None, own=is_own
        )
        return broken(cause, machine, by=who)

    def _still_fits(
        self, entry: Entry, waiter: Waiter, found: Found, now: float
    ) -> bool:
        end = found.start + waiter.request.hold_seconds
        if found.start >= SOMEDAY:
            return False  # it may be kept another machine
        claim = Claim(found.start, end, found.amounts)
        return is_kept(entry.room(now), claim, now)

    def _drop(self, waiters: Iterable[Waiter], cause: Explanation) -> list[Waiter]:
        dropped = list(waiters)
        for waiter in dropped:
            self.take_back(waiter)
            waiter.lost = cause
        return dropped


def _has_it_all(entry: Entry, waiter: Waiter) -> bool:
    """Return whether the machine could ever do what it is kept for."""
    return waiter.found is not None and (
        assign(entry.capacity, waiter.found.need) is not None
    )


def broken(
    cause: Cause | Reason, machine: str | None, *, by: Holder | None = None
) -> Explanation:
    """Return that a promise cannot be kept, and why."""
    return Explanation(
        reason=Reason.PROMISE_BROKEN,
        subject=cause.value,
        machine=machine,
        holders=() if by is None else (by,),
    )


def _cause(entry: Entry | None, name: str, now: float) -> Explanation:
    if entry is None:
        return broken(Cause.MACHINE_REMOVED, name)
    if entry.trouble is not None:
        return broken(entry.trouble.reason, name)
    if any(hold.end <= now for hold in entry.holds.values()):
        return broken(Cause.HOLDER_OVERDUE, name)
    if entry.outside:
        return broken(Reason.FOREIGN_PROCESS, name)
    return broken(Cause.LESS_ROOM, name)


def _behind(waiter: Waiter) -> int:
    return behind_priority(waiter.waiting, waiter.request)
