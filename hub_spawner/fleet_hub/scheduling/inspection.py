"""Everything there is to say about one request: each machine, and what would help.

``explain`` says what happens; this adds why on each machine, the ones that would serve
included, and the smallest changes.  Nothing is decided and nothing is changed.

Every machine's code and numbers are there, told once for those that are alike.  Who
holds what on a machine is told by the page, the nearest machines first: in a large fleet
that takes longer than everything else.  What it is made from is taken at once; it may
be made elsewhere, later.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from typing import Final

from fleet_contracts.changes import Change
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.scheduling.alike import Alike, alike
from fleet_hub.scheduling.answers import Asker, machine_reason
from fleet_hub.scheduling.counterfactual import changes_for
from fleet_hub.scheduling.decisions import Verdict
from fleet_hub.scheduling.entries import Entry
from fleet_hub.scheduling.explain import class_with_time, judge, refused, waits
from fleet_hub.scheduling.kept_answers import KeptAnswers
from fleet_hub.scheduling.outlooks import Outlook
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Waiting
from fleet_hub.scheduling.telling import told
from fleet_hub.scheduling.waiter import Waiter


PAGE: Final = 40
"""How many machines are told with their holders at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineAnswer:
    """What one machine says to a request."""

    machine: str
    explanation: Explanation | None = None
    """Why not, perhaps for several alike; None: it would take the request now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One machine that was asked: its reason, and what its answer is made from."""

    machine: str
    reason: Reason | None
    known: Explanation | None = None
    still: Entry | None = None
    """The machine as it was then."""
    outlook: Outlook | None = None
    asker: Asker | None = None
    kept: KeptAnswers | None = None

    def answer(self) -> MachineAnswer:
        """Return what it said."""
        why = self.known
        if self.still is not None and self.outlook and self.asker and self.kept:
            why = self.kept.of(self.still, self.outlook, self.asker)
        return MachineAnswer(machine=self.machine, explanation=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """One verdict, down to each machine."""

    verdict: Verdict
    alike: tuple[Alike, ...] = ()
    """All machines; none where the request was refused before any was asked."""
    page: int = 1
    asked: tuple[Asked, ...] = ()
    """The machines of the page, those that take it first and then the nearest misses."""
    changes: tuple[Change, ...] = ()
    """What would make it fit, the smallest change first."""

    @property
    def machines(self) -> tuple[MachineAnswer, ...]:
        """What each machine of the page says; needs no planner any more."""
        return tuple(one.answer() for one in self.asked)

    @property
    def counts(self) -> Counter[Reason]:
        """How many machines give each reason; those that take it give none."""
        counted: Counter[Reason] = Counter()
        for one in self.alike:
            if one.reason is not None:
                counted[one.reason] += len(one.machines)
        return counted


def inspect_request(planner: Planner, asked: Waiting, page: int = 1) -> Inspection:
    """Return what would happen to *asked* if it joined the line now."""
    with planner.imagine(asked) as waiter:
        if isinstance(waiter, Explanation):
            return Inspection(verdict=refused(waiter), page=page)
        found = _inspected(planner, waiter, judge(planner, waiter), page)
    return _with_time(planner, asked, found)


def inspect_waiting(planner: Planner, workload: str, page: int = 1) -> Inspection:
    """Return what happens to a workload of the line.

    Raises:
        KeyError: no such workload waits.
    """
    waiter = planner.waiters[workload]
    found = _inspected(planner, waiter, waits(planner, waiter), page)
    return _with_time(planner, waiter.waiting, found)


def _with_time(planner: Planner, asked: Waiting, found: Inspection) -> Inspection:
    """Return *found* with a class that has a time, where this one has none."""
    if found.changes or found.verdict.startable:
        return found
    change = class_with_time(planner, asked, found.verdict)
    return found if change is None else replace(found, changes=(change,))


def _inspected(
    planner: Planner, waiter: Waiter, verdict: Verdict, page: int
) -> Inspection:
    everybody = alike(planner, waiter)
    found = Inspection(
        verdict=verdict,
        alike=everybody,
        page=page,
        asked=tuple(_ask_page(planner, waiter, everybody, page)),
    )
    if verdict.startable:
        return found
    return replace(found, changes=changes_for(planner, waiter, found.counts))


def _ask_page(
    planner: Planner, waiter: Waiter, everybody: Sequence[Alike], page: int
) -> Iterator[Asked]:
    """Yield what each machine of the page says."""
    asker = waiter.asker(names_visible=planner.fleet.context.names_visible)
    nearest = groupby(everybody, key=lambda one: one.reason)
    names = chain.from_iterable(
        heapq.merge(*(one.machines for one in equal)) for _, equal in nearest
    )
    for name in islice(names, (page - 1) * PAGE, page * PAGE):
        yield _ask(planner, waiter, asker, name)


def _ask(planner: Planner, waiter: Waiter, asker: Asker, name: str) -> Asked:
    fleet, interest, now = planner.fleet, waiter.interest, planner.now
    if interest.pin is not None and interest.pin.machine != name:
        why: Explanation | None = Explanation(reason=Reason.DATA_NOT_LOCAL)
        return Asked(machine=name, reason=Reason.DATA_NOT_LOCAL, known=why)
    entry = fleet.entries[name]
    outlook = fleet.outlook_on(interest, entry)
    known = fleet.answers.get(entry, outlook, asker)
    if known is not None:
        return Asked(machine=name, reason=known.reason, known=known)
    reason, _ = machine_reason(entry, outlook, asker.rejected_by)
    if reason is not None:
        return Asked(
            machine=name,
            reason=reason,
            still=entry.still(),
            outlook=outlook,
            asker=asker,
            kept=fleet.answers,
        )
    why = planner.bar_of(waiter)
    if why is None and fleet.start_on(interest, name, now) > now:
        # Room that is not for this request: it is promised to others.
        why = told(planner, interest, waiter, name)
    return Asked(machine=name, reason=why.reason if why else None, known=why)
