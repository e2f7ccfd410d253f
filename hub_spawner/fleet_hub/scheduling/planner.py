"""The engine: follows the fleet event by event and decides what can be decided.

Every waiting workload gets, as far as holders have ends, a promise: a machine and a
time by which it starts there.  Others start before it only where that keeps every
promise (conservative backfill).  A promise only ever moves earlier; it moves later
only when something took its ground away, and then the cause is told.

It has no clock and no I/O: equal calls give equal decisions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from fleet_contracts.catalog import Catalog
from fleet_contracts.causes import Cause
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.scheduling.agenda import Agenda
from fleet_hub.scheduling.bars import bar_of, never_copied
from fleet_hub.scheduling.choice import Request, resolve
from fleet_hub.scheduling.crowd import Crowd
from fleet_hub.scheduling.deciding import Decider
from fleet_hub.scheduling.decisions import Placement, Plan, Refusal
from fleet_hub.scheduling.entries import Found
from fleet_hub.scheduling.fair_use import FairUse
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.line import Line
from fleet_hub.scheduling.profile import FOREVER
from fleet_hub.scheduling.promises import Promises, broken
from fleet_hub.scheduling.quota_watch import QuotaWatch
from fleet_hub.scheduling.rounds import Rounds
from fleet_hub.scheduling.snapshot import (
    Allocation,
    MachineState,
    Ranking,
    Usage,
    Waiting,
)
from fleet_hub.scheduling.survey import never_answer
from fleet_hub.scheduling.trouble import Context
from fleet_hub.scheduling.turns import Turns, has_missed
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
        self.quotas = QuotaWatch(
            catalog, self.line, self.waiters, names_visible=names_visible
        )
        self.promises = Promises(self.fleet, self.line, self.waiters, moved=self._moved)
        self._agenda = Agenda()
        self._decider = Decider(
            self.fleet,
            self.promises,
            self.quotas,
            self._agenda,
            rule_of=self.line.rule_of,
            started=self._started,
            barred=self._barred,
        )
        self._fair = FairUse(catalog, self.fleet, self.line)
        self._requests: dict[object, Request] = {}
        self.crowd = Crowd()
        self._structure = -1
        self._unjudged = True
        """Whether everybody may have become hopeless."""
        self._placements: list[Placement] = []
        self._refusals: list[Refusal] = []
        self._rounds = Rounds(self._agenda, self._decider, self.promises)
        self._unrestored: dict[str, set[str]] = {}
        """Whose earlier promises wait for each machine to come back."""
        self._swept: deque[str] = deque()
        self._copying: dict[str, set[str]] = {}
        """Who begins with a copy of files, by the machine that has them."""

    def use(self, usage: Mapping[int, Usage]) -> None:
        """Know what users have had; *usage* may go on changing."""
        self._fair.usage = usage

    # Events.  Each may be followed by others; ``decide`` looks at all of them.

    def put_machine(self, machine: MachineState) -> None:
        """A machine was enrolled, or something about it changed."""
        old = self.fleet.entries.get(machine.name)
        before = [] if old is None else list(old.allocations.values())
        entry = self.fleet.put(machine)
        self._follow(before, entry.allocations.values())
        for allocation in entry.allocations.values():
            self._agenda.watch(machine.name, ends_by=allocation.ends_by)
        if machine.quarantined_until is not None:
            self._agenda.remind(machine.quarantined_until, machine=machine.name)
        self._agenda.doubt(machine.name)
        self._agenda.pending |= self._copying.get(machine.name, set())
        if machine.name in self._unrestored and entry.trouble is None:
            self._restore(self._await_no_more(machine.name))

    def remove_machine(self, name: str) -> None:
        """A machine was taken out of the fleet."""
        gone = self.fleet.remove(name).allocations.values()
        self._follow(gone, ())
        self._agenda.doubt(name)
        self._agenda.pending |= self._copying.get(name, set())

    def release(self, machine: str, workload: str) -> None:
        """A machine confirmed that nothing of *workload* runs there any more."""
        entry = self.fleet.entries[machine]
        allocation = entry.allocations.get(workload)
        if allocation is not None:
            entry.release(workload)
            self._count([allocation], [])
            self._agenda.changed.add(machine)
            if entry.outside:
                # A device that others use beside us comes back to nobody.
                self._agenda.doubt(machine)

    def retell(self, machine: str, allocation: Allocation) -> None:
        """Something else is told of what a workload holds, and it holds the same."""
        entry = self.fleet.entries[machine]
        known = entry.allocations[allocation.workload]
        entry.retell(allocation)
        self.quotas.count([known], [allocation])

    def ask(self, waiting: Waiting, *, again: Cause = Cause.RETURNED_TO_LINE) -> None:
        """A workload joined the line, or something about its request changed.

        *again* says what took the place of one that comes with a promise.
        """
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
            waiter.said = waiting.promise if old is None else old.said
            waiter.broken = None if old is None else old.broken
            waiter.is_unrestored = old is not None and old.is_unrestored
        if waiter.promise is not None:
            cause = Reason.AGENT_REJECTED if waiting.rejected_by else again
            waiter.lost = broken(cause, None)
        self.waiters[waiting.workload] = waiter
        self.line.join(waiting, request)
        self.crowd.join(waiter, self.line.place_of(waiting.workload))
        self.quotas.moved(waiter)
        if waiting.source is not None:
            self._copying.setdefault(waiting.source, set()).add(waiting.workload)
        self._agenda.pending.add(waiting.workload)

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
            if not recovering:
                # Who is behind a machine that did not come back is told so.
                for name in list(self._unrestored):
                    self._tell_why_not_restored(self._await_no_more(name))
                self._agenda.pending |= self.waiters.keys()

    def restore_promises(self, *, stand: bool = False) -> None:
        """Keep the promises of an earlier run where their ground is still there.

        *stand*: they are those of a run that goes on, and are only looked at here.
        May be called once, after the machines and the line are complete.
        """
        machines = {
            name: waiter.waiting.reservation.machine
            for name, waiter in self.waiters.items()
            if waiter.waiting.reservation is not None
        }
        for name in self._restore(machines, stand=stand):
            self._unrestored.setdefault(machines[name], set()).add(name)
            entry = self.fleet.entries.get(machines[name])
            self.waiters[name].is_unrestored = (
                self.fleet.context.recovering
                and entry is not None
                and entry.trouble is not None
            )
            self.quotas.moved(self.waiters[name])

    def _await_no_more(self, machine: str) -> set[str]:
        """Return who awaited *machine*, and now does no more."""
        names = self._unrestored.pop(machine)
        for name in names & self.waiters.keys():
            self.waiters[name].is_unrestored = False
            self.quotas.moved(self.waiters[name])
            self._agenda.pending.add(name)
            self._decider.recheck(self.waiters[name])
        return names

    def _restore(self, names: Iterable[str], *, stand: bool = False) -> list[str]:
        """Keep the promises of *names*; return whose ground is not there."""
        waiters = [self.waiters[name] for name in names if name in self.waiters]
        left = []
        for waiter in sorted(
            waiters, key=lambda item: (item.promise or FOREVER, item.workload)
        ):
            if waiter.found is not None:
                continue
            if self.promises.restore(waiter, waiter.interest, self.now, stands=stand):
                self._decider.after_promise(waiter)
            else:
                left.append(waiter.workload)
        self._tell_why_not_restored(left)
        return left

    def _tell_why_not_restored(self, names: Iterable[str]) -> None:
        """Remember what took the ground from earlier promises of *names*."""
        for name in names:
            waiter = self.waiters.get(name)
            if waiter is not None and waiter.lost is not None and not waiter.found:
                waiter.lost = self.promises.why_not_restored(
                    waiter, waiter.interest, self.now
                )

    # Deciding.

    def decide(self, now: float, *, most_turns: int | None = None) -> Plan:
        """Decide everything that can be decided now; waits are told by ``telling``.

        After *most_turns* the rest is left for the next call, which is then due at
        once: one event may let everybody on a small fleet move.
        """
        self._pass_time(now)
        self._refuse_the_hopeless()
        is_unfinished = not self._rounds.take(now, self._turns, most_turns)
        placements, self._placements = self._placements, []
        refusals, self._refusals = self._refusals, []
        return Plan(
            placements=tuple(placements),
            refusals=tuple(refusals),
            look_again_at=now if is_unfinished else self._agenda.next_at,
            is_unfinished=is_unfinished,
        )

    def take_let_down(self) -> list[str]:
        """Return, once, whose promises broke since this was last asked."""
        names, self._agenda.let_down = self._agenda.let_down, set()
        return sorted(names)

    def rank_if_due(self, now: float) -> None:
        """Rank the line by what users have had; otherwise an event must, a while later."""
        if self._fair.is_due(now):
            self._rank(now)

    def _rank(self, now: float) -> None:
        self._fair.rank(self.waiters.values(), now)
        self._gather()

    def restore_ranking(self, ranking: Ranking) -> None:
        """Let the line stand as it stood elsewhere.

        May be called once, after the machines and the line are complete.
        """
        self._fair.restore(self.waiters.values(), ranking, self.now)
        self._gather()

    def look(self, now: float) -> None:
        """Let time go on without deciding: for answers that are true at *now*."""
        if now == self.now:
            return
        if now < self.now:
            self.fleet.forget_times()
        self.now = now
        self.fleet.context = replace(self.fleet.context, now=now)

    def look_again(self, most: int) -> int:
        """Look at up to *most* waiters whatever happened; the next turn is theirs.

        Returns how many should have had one already: none, if no event was missed.
        """
        if self._agenda or self._rounds:
            return 0
        missed = 0
        if not self._swept:
            self._swept.extend(self.line)
        for _ in range(min(most, len(self._swept))):
            waiter = self.waiters.get(self._swept.popleft())
            if waiter is not None and has_missed(
                waiter, self.fleet, self.quotas, self.now
            ):
                self._agenda.pending.add(waiter.workload)
                missed += 1
        return missed

    def settle(
        self, earlier: Usage | None, allocation: Allocation, until: float
    ) -> Usage:
        """Return *earlier* use with *allocation* added, which ends at *until*."""
        return self._fair.settle(earlier, allocation, until)

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
        try:
            with self.line.visit(waiting, request):
                yield waiter
        finally:
            del self.waiters[waiting.workload]

    def seek(self, waiter: Waiter) -> tuple[Found | None, list[Waiter]]:
        """Return the first opening, and whose lower promises it would take.

        Nothing is changed: a what-if asks here too.
        """
        return self._decider.seek(waiter, self.now)

    def bar_of(self, waiter: Waiter) -> Explanation | None:
        """Return what keeps *waiter* from every place, with its numbers as of now."""
        if waiter.found is not None:
            return waiter.bar
        return bar_of(self.fleet, self.quotas, waiter) or waiter.bar

    def request(
        self, waiting: Waiting, class_name: str | None
    ) -> Request | Explanation:
        """Return what *waiting* asks for with this class; the same object each time."""
        return resolve(
            self.catalog,
            waiting.principal,
            waiting.profile,
            class_name,
            waiting.model,
            known=self._requests,
        )

    def _waiter(self, waiting: Waiting, request: Request) -> Waiter:
        interest = self.fleet.interest(request, waiting.principal, waiting.pin)
        return Waiter(waiting=waiting, request=request, interest=interest)

    def _resolve(self, waiting: Waiting) -> Request | Explanation:
        return self.request(waiting, waiting.class_name)

    def _pass_time(self, now: float) -> None:
        self.look(now)
        for machine, workload in self._agenda.due(now):
            waiter = self.waiters.get(workload)
            if waiter is not None and waiter.start <= now:
                self._agenda.pending.add(workload)
            elif machine in self.fleet.entries:
                self.fleet.judge_trouble(machine)
                self._agenda.doubt(machine)
        if self._fair.is_overdue(now):
            self._rank(now)

    def _moved(self, waiter: Waiter) -> None:
        """*waiter* starts at another time at the latest."""
        if waiter.bar is None:
            self.crowd.moved(waiter)
        self.quotas.moved(waiter)

    def _barred(self, waiter: Waiter) -> None:
        """*waiter* is kept from every place now, or is not any more."""
        change = self.crowd.leave if waiter.bar is not None else self.crowd.join
        change(waiter, self.line.place_of(waiter.workload))

    def _gather(self) -> None:
        """Arrange everybody anew, after interests or places changed."""
        self.quotas.arrange()
        self.crowd = Crowd(
            (self.line.place_of(name), self.waiters[name])
            for name in self.line
            if self.waiters[name].bar is None
        )

    def follow_structure(self) -> None:
        """Work out again what everybody could use, if machines came, went or changed.

        Whoever answers between two decisions asks for it first.
        """
        if self._structure == self.fleet.structure:
            return
        self._structure = self.fleet.structure
        for waiter in self.waiters.values():
            waiting = waiter.waiting
            waiter.interest = self.fleet.interest(
                waiter.request, waiting.principal, waiting.pin
            )
        self._gather()
        self._unjudged = True

    def _refuse_the_hopeless(self) -> None:
        """Refuse what no machine will ever run; looked at when the structure changes."""
        self.follow_structure()
        names: Iterable[str] = self.waiters if self._unjudged else self._agenda.pending
        self._unjudged = False
        for name in sorted(names):
            if name in self.waiters and self.fleet.entries:
                self._refuse_if_hopeless(self.waiters[name])

    def _refuse_if_hopeless(self, waiter: Waiter) -> None:
        answer = never_answer(self.fleet, waiter.interest, waiter) or never_copied(
            self.fleet, waiter
        )
        if answer is not None:
            self._remove(waiter)
            self._refusals.append(Refusal(workload=waiter.workload, explanation=answer))

    def _turns(self, now: float) -> Turns:
        return Turns(
            fleet=self.fleet,
            line=self.line,
            waiters=self.waiters,
            promises=self.promises,
            crowd=self.crowd,
            now=now,
        )

    def _started(
        self, waiter: Waiter, placement: Placement, allocation: Allocation
    ) -> None:
        self._count([], [allocation])
        self._agenda.watch(placement.machine, ends_by=allocation.ends_by)
        self._remove(waiter, starts=True)
        self._placements.append(placement)
        self._rounds.has_started = True

    def _remove(self, waiter: Waiter, *, starts: bool = False) -> None:
        self._decider.free(waiter)
        if waiter.bar is None:
            self.crowd.leave(waiter, self.line.place_of(waiter.workload))
        self.line.leave(waiter.waiting, waiter.request, starts=starts)
        self.quotas.leave(waiter)
        if waiter.waiting.source is not None:
            self._copying[waiter.waiting.source].discard(waiter.workload)
        del self.waiters[waiter.workload]
        self._agenda.pending.discard(waiter.workload)
        self._decider.recheck(waiter)

    def _follow(self, gone: Iterable[Allocation], come: Iterable[Allocation]) -> None:
        """Count what ended and what began."""
        before = {item.workload: item for item in gone}
        after = {item.workload: item for item in come}
        ended = [item for name, item in before.items() if after.get(name) is not item]
        begun = [item for name, item in after.items() if before.get(name) is not item]
        self._count(ended, begun)

    def _count(self, ended: list[Allocation], begun: list[Allocation]) -> None:
        self._agenda.pending |= self.quotas.count(ended, begun)
        self._fair.follow(ended, begun)
