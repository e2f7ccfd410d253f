"""One waiter's turn: it starts, is promised a time, is barred, or knows no time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from fleet_contracts.causes import Cause
from fleet_contracts.reasons import Explanation
from fleet_hub.scheduling.agenda import Agenda
from fleet_hub.scheduling.bars import bar_of, loss_by
from fleet_hub.scheduling.decisions import Placement, Rule
from fleet_hub.scheduling.entries import Found
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.keeping import patient_until, room_to_keep
from fleet_hub.scheduling.placing import placement_of, promised_allocation
from fleet_hub.scheduling.promises import Promises, broken
from fleet_hub.scheduling.quota_watch import QuotaWatch
from fleet_hub.scheduling.quotas import is_of_quota
from fleet_hub.scheduling.snapshot import Allocation
from fleet_hub.scheduling.turns import most_promises
from fleet_hub.scheduling.waiter import NOTICEABLE_SECONDS, Waiter


_NO_ROOM: Final = broken(Cause.LESS_ROOM, None)
"""What took a place of which nobody knows what did."""


class Decider:
    """Takes turns; what they change is on the agenda, what starts is handed on."""

    def __init__(
        self,
        fleet: Fleet,
        promises: Promises,
        quotas: QuotaWatch,
        agenda: Agenda,
        *,
        rule_of: Callable[[str], Rule],
        started: Callable[[Waiter, Placement, Allocation], None],
        barred: Callable[[Waiter], None],
    ) -> None:
        """Decide over *fleet*; *started* hears of each start.

        *rule_of* says what puts a workload before others, while it is in the line.
        *barred* hears of whoever is kept from every place, and of their end of that.
        """
        self._fleet = fleet
        self._promises = promises
        self._quotas = quotas
        self._agenda = agenda
        self._rule_of = rule_of
        self._started = started
        self._barred = barred

    def seek(self, waiter: Waiter, now: float) -> tuple[Found | None, list[Waiter]]:
        """Return the first opening, and whose lower promises it would take.

        Nothing is changed: a what-if asks here too.
        """
        interest, excluded = waiter.interest, waiter.waiting.rejected_by
        found = self._fleet.soonest(interest, now, excluded)
        if found is not None and found.start <= now:
            return found, []
        if waiter.is_unrestored:
            # Its own place is expected back: it takes nobody's meanwhile.
            return found, []
        return self._promises.sooner_for(waiter, interest, found, now)

    def take_turn(self, waiter: Waiter, changed: set[str], now: float) -> None:
        """Decide about *waiter*, after something about the *changed* machines."""
        self._look_for_a_bar(waiter)
        if waiter.bar is not None:
            lost = loss_by(self._fleet, waiter, waiter.bar)
            if lost is not None:
                self._withdraw(waiter, _taken_before(waiter) or lost)
            return
        if waiter.found is not None and waiter.start <= now:
            # Its time has come: its own promise must not stand in its way.
            waiter.lost = self._promises.why_not_now(waiter.found.machine, now)
            self.free(waiter)
            self.recheck(waiter)
        if waiter.found is None:
            found, displaced = self.seek(waiter, now)
        else:
            found, displaced = self._improvement(waiter, changed, now), []
        if found is None:
            # Until the machines are back nobody knows what can be kept.
            if not waiter.is_timed and not self._fleet.context.recovering:
                self._keep(waiter, now)
        elif found.start <= now:
            self._start(waiter, found, displaced, now)
        elif _is_worse(found, waiter):
            # Its own machine may be about to come back, and keep what was said.
            return
        elif (
            displaced
            or waiter.found is not None
            or len(self._promises) < most_promises(self._fleet)
        ):
            self._promise(waiter, found, displaced, now)

    def lose(self, waiters: Iterable[Waiter]) -> None:
        """Their promises lost their ground: they seek another place."""
        for waiter in waiters:
            self._agenda.pending.add(waiter.workload)
            self.recheck(waiter)

    def free(self, waiter: Waiter) -> None:
        """Take back what is promised to *waiter*; others may use it."""
        freed = self._promises.take_back(waiter)
        if freed is not None:
            self._agenda.changed.add(freed)

    def recheck(self, waiter: Waiter) -> None:
        """Look again at whoever shares a quota with *waiter*."""
        self._agenda.pending |= self._quotas.beside(waiter.waiting.principal)

    def _look_for_a_bar(self, waiter: Waiter) -> None:
        before, waiter.bar = waiter.bar, bar_of(self._fleet, self._quotas, waiter)
        of_quota = is_of_quota(before), is_of_quota(waiter.bar)
        is_news = (before is None) is not (waiter.bar is None)
        if is_news:
            self._barred(waiter)
        if is_news or of_quota[0] is not of_quota[1]:
            self._quotas.moved(waiter)
        if of_quota == (True, False):
            # It has spoken for others of its kind: the next one does from here on.
            self.recheck(waiter)

    def after_promise(self, waiter: Waiter) -> None:
        """Compare a promise with what was said before, and remember when it is due."""
        start, said = waiter.start, waiter.promise
        if said is not None and start > said + NOTICEABLE_SECONDS:
            waiter.broken, waiter.promise = waiter.lost or _NO_ROOM, start
            self._agenda.let_down.add(waiter.workload)
        else:
            waiter.promise = start if said is None else min(said, start)
        waiter.lost = None
        machine = "" if waiter.found is None else waiter.found.machine
        self._agenda.remind(start, machine=machine, workload=waiter.workload)

    def _keep(self, waiter: Waiter, now: float) -> None:
        """Keep room for *waiter*, whom nobody can tell a time, once it waited long."""
        if waiter.found is None:
            self._withdraw(waiter, waiter.lost)
        if now < patient_until(waiter):
            return  # until then whatever is given back brings it up again
        kept = room_to_keep(self._fleet, self._promises, waiter)
        if kept is None:
            return
        found, displaced = kept
        for other in displaced:
            self.free(other)
            if other is not waiter:
                self._agenda.pending.add(other.workload)
                self.recheck(other)
        self._promises.make(waiter, found)
        self.recheck(waiter)

    def _improvement(
        self, waiter: Waiter, changed: set[str], now: float
    ) -> Found | None:
        """Return a better opening on one of the *changed* machines; None: there is none."""
        sooner = waiter.start - NOTICEABLE_SECONDS
        own = None if waiter.found is None else waiter.found.machine
        best: Found | None = None
        for name in sorted(changed - waiter.waiting.rejected_by.keys()):
            if (
                name != own
                and self._fleet.start_on(waiter.interest, name, now) >= sooner
            ):
                continue
            here = self._fleet.on_machine(
                waiter.interest, name, now, without=(waiter.workload,)
            )
            if here is not None and here.start < sooner:
                best, sooner = here, here.start
        return best

    def _promise(
        self, waiter: Waiter, found: Found, displaced: list[Waiter], now: float
    ) -> None:
        self.free(waiter)
        if displaced:
            self._displace(waiter, found, displaced, now)
        else:
            self._promises.make(waiter, found)
        self.after_promise(waiter)
        self.recheck(waiter)

    def _displace(
        self, by: Waiter, found: Found, others: list[Waiter], now: float
    ) -> None:
        """Promise *found* to *by* in place of *others*, of whom some may keep theirs."""
        self.lose(self._promises.displace(others, by, found, now))
        self._agenda.changed.add(found.machine)

    def _withdraw(self, waiter: Waiter, cause: Explanation | None) -> None:
        """Nothing can be promised to *waiter* any more."""
        if waiter.found is not None:
            self.free(waiter)
            self.recheck(waiter)
        if waiter.promise is not None:
            waiter.broken, waiter.promise = cause or _NO_ROOM, None
            self._agenda.let_down.add(waiter.workload)
        waiter.lost = None

    def _start(
        self, waiter: Waiter, found: Found, displaced: list[Waiter], now: float
    ) -> None:
        self.free(waiter)
        score: tuple[int, ...] = ()
        runners_up: tuple[str, ...] = ()
        if displaced:
            self._displace(waiter, found, displaced, now)
            self._promises.take_back(waiter)
        else:
            excluded = waiter.waiting.rejected_by
            best = self._fleet.best_now(waiter.interest, now, excluded)
            found, score, runners_up = best or (found, score, runners_up)
        entry = self._fleet.entries[found.machine]
        placement = placement_of(
            waiter,
            entry,
            found,
            score=score,
            runners_up=runners_up,
            rule=self._rule_of(waiter.workload),
            now=now,
        )
        allocation = promised_allocation(waiter, placement, now)
        entry.hold(allocation)
        self._started(waiter, placement, allocation)


def _taken_before(waiter: Waiter) -> Explanation | None:
    """Return what took a machine's place from *waiter* before anything barred it.

    That is why it has to look for another place; that it asked anew takes no machine's.
    """
    lost = waiter.lost
    return lost if lost is not None and lost.machine is not None else None


def _is_worse(found: Found, waiter: Waiter) -> bool:
    """Return whether *found* is later than a promise that may still be restored."""
    if not waiter.is_unrestored or waiter.found or waiter.promise is None:
        return False
    return found.start > waiter.promise + NOTICEABLE_SECONDS
