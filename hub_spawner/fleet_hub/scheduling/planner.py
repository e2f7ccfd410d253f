"""The engine: follows the fleet event by event and decides what can be decided.

Every waiting workload gets, as far as holders have ends, a promise: a machine and a
time by which it starts there.  Others start before it only where that keeps every
promise (conservative backfill).  A promise only ever moves earlier; it moves later
only when something took its ground away, and then the cause is told.

It has no clock and no I/O: equal calls give equal decisions.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from fleet_contracts.catalog import Catalog
from fleet_contracts.reasons import Explanation
from fleet_hub.scheduling.choice import Request, resolve
from fleet_hub.scheduling.crowd import Crowd
from fleet_hub.scheduling.decisions import Placement, Plan, Refusal
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.line import RANKED_EVERY_SECONDS, Line
from fleet_hub.scheduling.placing import placement_of, promised_allocation
from fleet_hub.scheduling.pools import SLACK_SECONDS, Found
from fleet_hub.scheduling.profile import FOREVER
from fleet_hub.scheduling.promises import Promises, broken
from fleet_hub.scheduling.quota_watch import QuotaWatch
from fleet_hub.scheduling.shares import Ledger, capacity_of
from fleet_hub.scheduling.snapshot import Allocation, MachineState, Usage, Waiting
from fleet_hub.scheduling.survey import never_answer
from fleet_hub.scheduling.trouble import Context
from fleet_hub.scheduling.turns import MOST_PROMISES, NOTICEABLE_SECONDS, Turns
from fleet_hub.scheduling.waiter import Waiter


class Planner:
    """One fleet and its line, kept from event to event."""

    def __init__(self, catalog: Catalog, *, now: float, names_visible: bool = True):
        """Begin with an empty fleet and nobody in the line."""
        self.catalog = catalog
        self.now = now
        self.fleet = Fleet(
            Context(now=now, trust=catalog.trust, names_visible=names_visible)
        )
        self.line = Line(catalog)
        self.waiters: dict[str, Waiter] = {}
        self.quotas = QuotaWatch(catalog, self.line, self.waiters)
        self.promises = Promises(self.fleet, self.line, self.waiters)
        self.usage: Mapping[int, Usage] = {}
        self._requests: dict[object, Request] = {}
        self._crowd = Crowd()
        self._structure = -1
        self._use: Ledger | None = None
        self._use_of = -1
        self._ranked_at: float | None = None
        self._changed: set[str] = set()
        self._doubted: set[str] = set()
        """Machines on which a promise may have lost its ground."""
        self._pending: set[str] = set()
        self._alarms: list[tuple[float, str, str]] = []
        self._placements: list[Placement] = []
        self._refusals: list[Refusal] = []

    # Events.  Each may be followed by others; ``decide`` looks at all of them.

    def put_machine(self, machine: MachineState) -> None:
        """A machine was enrolled, or something about it changed."""
        old = self.fleet.entries.get(machine.name)
        before = [] if old is None else list(old.allocations.values())
        entry = self.fleet.put(machine)
        self._follow(before, entry.allocations.values())
        for allocation in entry.allocations.values():
            self._watch(allocation.ends_by, machine.name)
        until = machine.quarantined_until
        if until is not None:
            heapq.heappush(self._alarms, (until, machine.name, ""))
        self._doubt(machine.name)

    def remove_machine(self, name: str) -> None:
        """A machine was taken out of the fleet."""
        gone = self.fleet.remove(name).allocations.values()
        self._follow(gone, ())
        self._doubt(name)

    def release(self, machine: str, workload: str) -> None:
        """A machine confirmed that nothing of *workload* runs there any more."""
        entry = self.fleet.entries[machine]
        allocation = entry.allocations.get(workload)
        if allocation is not None:
            entry.release(workload)
            self._follow([allocation], ())
            self._changed.add(machine)

    def ask(self, waiting: Waiting) -> None:
        """A workload joined the line, or something about its request changed."""
        old = self.waiters.get(waiting.workload)
        if old is not None:
            self._remove(old)
        request = self._resolve(waiting)
        if isinstance(request, Explanation):
            self._refusals.append(
                Refusal(workload=waiting.workload, explanation=request)
            )
            return
        waiter = self._waiter(waiting, request)
        if old is None or old.request is request:
            waiter.promise = waiting.promise if old is None else old.promise
            waiter.lost = broken(_why_again(waiting), None)
        self.waiters[waiting.workload] = waiter
        self.line.join(waiting, request)
        self._crowd.join(waiter, self.line.place_of(waiting.workload))
        self.quotas.join(waiter)
        self._pending.add(waiting.workload)

    def leave(self, workload: str) -> None:
        """A workload left the line by itself."""
        waiter = self.waiters.get(workload)
        if waiter is not None:
            self._remove(waiter)

    def recover(self, *, recovering: bool) -> None:
        """Say whether silent machines may still be about to report."""
        if recovering != self.fleet.context.recovering:
            self.fleet.context = replace(self.fleet.context, recovering=recovering)
            for name in self.fleet.entries:
                self.fleet.judge_trouble(name)

    def restore_promises(self) -> None:
        """Keep the promises of an earlier run where their ground is still there.

        May be called once, after the machines and the line are complete.
        """
        waiters = (self.waiters[name] for name in sorted(self._pending))
        kept = [item for item in waiters if item.waiting.reservation is not None]
        for waiter in sorted(kept, key=lambda item: item.promise or FOREVER):
            if self.promises.restore(waiter, waiter.interest, self.now):
                self._after_promise(waiter)

    # Deciding.

    def decide(self, now: float) -> Plan:
        """Decide everything that can be decided now; waits are told by ``telling``."""
        self._pass_time(now)
        self._refuse_the_hopeless()
        while self._changed or self._pending:
            changed, self._changed = self._changed, set()
            doubted, self._doubted = self._doubted, set()
            for name in sorted(doubted):
                self._lose(self.promises.check(name, now))
            pending, self._pending = self._pending, set()
            for waiter in self._turns().after(changed, pending):
                self._take_turn(waiter, changed)
        placements, self._placements = self._placements, []
        refusals, self._refusals = self._refusals, []
        return Plan(
            placements=tuple(placements),
            refusals=tuple(refusals),
            look_again_at=self._alarms[0][0] if self._alarms else None,
        )

    @contextmanager
    def imagine(self, waiting: Waiting) -> Iterator[Waiter | Explanation]:
        """Put *waiting* into the line for a question, and take it out again.

        Nothing is decided meanwhile.
        """
        request = self._resolve(waiting)
        if isinstance(request, Explanation):
            yield request
            return
        waiter = self._waiter(waiting, request)
        self.waiters[waiting.workload] = waiter
        self.line.join(waiting, request)
        try:
            yield waiter
        finally:
            self.line.leave(waiting, request, starts=False)
            del self.waiters[waiting.workload]

    def seek(self, waiter: Waiter) -> tuple[Found | None, list[Waiter]]:
        """Return the first opening, and whose lower promises it would take.

        Nothing is changed: a what-if asks here too.
        """
        interest, excluded = waiter.interest, waiter.waiting.rejected_by
        found = self.fleet.soonest(interest, self.now, excluded)
        if found is not None and found.start <= self.now:
            return found, []
        return self.promises.sooner_for(waiter, interest, found, self.now)

    def _waiter(self, waiting: Waiting, request: Request) -> Waiter:
        interest = self.fleet.interest(request, waiting.principal, waiting.pin)
        return Waiter(waiting=waiting, request=request, interest=interest)

    def _resolve(self, waiting: Waiting) -> Request | Explanation:
        return resolve(
            self.catalog,
            waiting.principal,
            waiting.profile,
            waiting.class_name,
            waiting.model,
            known=self._requests,
        )

    def _pass_time(self, now: float) -> None:
        self.now = now
        self.fleet.context = replace(self.fleet.context, now=now)
        while self._alarms and self._alarms[0][0] <= now:
            _, machine, workload = heapq.heappop(self._alarms)
            waiter = self.waiters.get(workload)
            if waiter is not None and waiter.start <= now:
                self._pending.add(workload)
            elif machine in self.fleet.entries:
                self.fleet.judge_trouble(machine)
                self._doubt(machine)
        if self._ranked_at is None or now - self._ranked_at >= RANKED_EVERY_SECONDS:
            self._rank()

    def _rank(self) -> None:
        """Give everybody their place anew, by what users have had by now."""
        if self._use is None or self._use_of != self.fleet.structure:
            # Shares are parts of the whole fleet, which is another one now.
            self._use_of = self.fleet.structure
            entries = self.fleet.entries.values()
            self._use = Ledger(
                self.usage,
                now=self.now,
                capacity=capacity_of(entry.machine for entry in entries),
                half_life_seconds=self.catalog.shares.half_life_seconds,
            )
            for entry in entries:
                for allocation in entry.allocations.values():
                    self._use.start(allocation)
        self._ranked_at = self.now
        everybody = [(item.waiting, item.request) for item in self.waiters.values()]
        self.line.rank(everybody, self._use.capacity, self._use.used(self.now))
        self._gather()

    def _gather(self) -> None:
        """Arrange everybody anew, after interests or places changed."""
        self._crowd = Crowd()
        for workload, waiter in self.waiters.items():
            self._crowd.join(waiter, self.line.place_of(workload))

    def _refuse_the_hopeless(self) -> None:
        """Refuse what no machine will ever run; looked at when the structure changes."""
        names: Iterable[str] = list(self._pending)
        if self._structure != self.fleet.structure:
            self._structure = self.fleet.structure
            names = list(self.waiters)
            for waiter in self.waiters.values():
                waiting = waiter.waiting
                waiter.interest = self.fleet.interest(
                    waiter.request, waiting.principal, waiting.pin
                )
            self._gather()
        for name in sorted(names):
            if name in self.waiters and self.fleet.entries:
                self._refuse_if_hopeless(self.waiters[name])

    def _refuse_if_hopeless(self, waiter: Waiter) -> None:
        answer = never_answer(self.fleet, waiter.interest, waiter)
        if answer is not None:
            self._remove(waiter)
            self._refusals.append(Refusal(workload=waiter.workload, explanation=answer))

    def _turns(self) -> Turns:
        return Turns(
            fleet=self.fleet,
            line=self.line,
            waiters=self.waiters,
            promises=self.promises,
            crowd=self._crowd,
            now=self.now,
        )

    def _take_turn(self, waiter: Waiter, changed: set[str]) -> None:
        waiter.quota = self.quotas.exceeded_by(waiter)
        if waiter.quota is not None:
            self._withdraw(waiter, broken("quota", None))
            return
        if waiter.start <= self.now:
            # Its time has come: its own promise must not stand in its way.
            self._free(waiter)
        if waiter.found is None:
            found, displaced = self.seek(waiter)
        else:
            found, displaced = self._improvement(waiter, changed), []
        if found is None:
            if waiter.found is None:
                self._withdraw(waiter, waiter.lost)
        elif found.start <= self.now:
            self._start(waiter, found, displaced)
        elif (
            displaced or waiter.found is not None or len(self.promises) < MOST_PROMISES
        ):
            self._promise(waiter, found, displaced)

    def _improvement(self, waiter: Waiter, changed: set[str]) -> Found | None:
        """Return a better opening on one of the *changed* machines; None: there is none."""
        sooner = waiter.start - NOTICEABLE_SECONDS
        own = None if waiter.found is None else waiter.found.machine
        best: Found | None = None
        for name in sorted(changed - waiter.waiting.rejected_by.keys()):
            if (
                name != own
                and self.fleet.start_on(waiter.interest, name, self.now) >= sooner
            ):
                continue
            here = self.fleet.on_machine(
                waiter.interest, name, self.now, without=(waiter.workload,)
            )
            if here is not None and here.start < sooner:
                best, sooner = here, here.start
        return best

    def _promise(self, waiter: Waiter, found: Found, displaced: list[Waiter]) -> None:
        self._free(waiter)
        if displaced:
            self._displace(waiter, found, displaced)
        else:
            self.promises.make(waiter, found)
        self._after_promise(waiter)
        self._recheck(waiter)

    def _displace(self, by: Waiter, found: Found, others: list[Waiter]) -> None:
        """Promise *found* to *by* in place of *others*, of whom some may keep theirs."""
        self._lose(self.promises.displace(others, by, found, self.now))
        self._changed.add(found.machine)

    def _lose(self, waiters: Iterable[Waiter]) -> None:
        """Their promises lost their ground: they seek another place."""
        for waiter in waiters:
            self._pending.add(waiter.workload)
            self._recheck(waiter)

    def _after_promise(self, waiter: Waiter) -> None:
        """Compare a promise with what was said before, and remember when it is due."""
        start, said = waiter.start, waiter.promise
        if said is not None and start > said + NOTICEABLE_SECONDS:
            waiter.broken, waiter.promise = waiter.lost or _no_room(), start
        else:
            waiter.promise = start if said is None else min(said, start)
        waiter.lost = None
        machine = "" if waiter.found is None else waiter.found.machine
        heapq.heappush(self._alarms, (start, machine, waiter.workload))

    def _withdraw(self, waiter: Waiter, cause: Explanation | None) -> None:
        """Nothing can be promised to *waiter* any more."""
        if waiter.found is not None:
            self._recheck(waiter)
        self._free(waiter)
        if waiter.promise is not None:
            waiter.broken, waiter.promise = cause or _no_room(), None
        waiter.lost = None

    def _free(self, waiter: Waiter) -> None:
        """Take back what is promised to *waiter*; others may use it."""
        freed = self.promises.take_back(waiter)
        if freed is not None:
            self._changed.add(freed)

    def _start(self, waiter: Waiter, found: Found, displaced: list[Waiter]) -> None:
        self._free(waiter)
        score: tuple[int, ...] = ()
        runners_up: tuple[str, ...] = ()
        if displaced:
            self._displace(waiter, found, displaced)
            self.promises.take_back(waiter)
        else:
            best = self.fleet.best_now(
                waiter.interest, self.now, waiter.waiting.rejected_by
            )
            if best is not None:
                found, score, runners_up = best
        entry = self.fleet.entries[found.machine]
        placement = placement_of(
            waiter, entry, found, score=score, runners_up=runners_up, now=self.now
        )
        allocation = promised_allocation(waiter, placement, self.now)
        entry.hold(allocation)
        self._follow((), [allocation])
        self._watch(allocation.ends_by, found.machine)
        self._remove(waiter, starts=True)
        self._placements.append(placement)

    def _remove(self, waiter: Waiter, *, starts: bool = False) -> None:
        self._free(waiter)
        self._crowd.leave(waiter, self.line.place_of(waiter.workload))
        self.line.leave(waiter.waiting, waiter.request, starts=starts)
        self.quotas.leave(waiter)
        del self.waiters[waiter.workload]
        self._pending.discard(waiter.workload)
        self._recheck(waiter)

    def _recheck(self, waiter: Waiter) -> None:
        """Look again at whoever shares a quota with *waiter*."""
        self._pending |= self.quotas.beside(waiter.waiting.principal)

    def _follow(self, gone: Iterable[Allocation], come: Iterable[Allocation]) -> None:
        """Count what ended and what began."""
        before = {item.workload: item for item in gone}
        after = {item.workload: item for item in come}
        ended = [item for name, item in before.items() if after.get(name) is not item]
        begun = [item for name, item in after.items() if before.get(name) is not item]
        self._pending |= self.quotas.count(ended, begun)
        if self._use is not None:
            for item in ended:
                self._use.end(item)
            for item in begun:
                self._use.start(item)

    def _doubt(self, machine: str) -> None:
        """Something about *machine* may be worse than before, or better."""
        self._doubted.add(machine)
        self._changed.add(machine)

    def _watch(self, ends_by: float | None, machine: str) -> None:
        if ends_by is not None:
            heapq.heappush(self._alarms, (ends_by + SLACK_SECONDS, machine, ""))


def _why_again(waiting: Waiting) -> str:
    """Return what took the place that *waiting* had been promised before."""
    return "agent_rejected" if waiting.rejected_by else "restarted"


def _no_room() -> Explanation:
    return broken("less_room", None)
