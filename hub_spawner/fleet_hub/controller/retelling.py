"""Telling those who wait what they wait for: durable where it changed, and in turns.

A cycle may change the answer for everybody in the line.  Whoever is new, or whose
promise broke, is told in the same cycle; in a long line the others follow within
moments, a few at a time, so that nobody's start waits for other people's news.  Who
looks meanwhile gets the true answer: see ``wait_of``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from fleet_contracts.allocations import Event, State
from fleet_contracts.reasons import Explanation
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller.core import Core, Transaction
from fleet_hub.controller.model import WAITING
from fleet_hub.controller.records import Workload
from fleet_hub.scheduling.decisions import Wait
from fleet_hub.scheduling.likely import outset_of
from fleet_hub.scheduling.likely_ends import with_likely_ends
from fleet_hub.scheduling.telling import acknowledge, waits


AT_A_TIME: Final = 20
"""How many are told in one go: a few milliseconds' work."""


def retell(core: Core, most: int, *, only_urgent: bool = False) -> int:
    """Tell up to *most* of those whose answer may be another now; return how many.

    The urgent ones were never told anything, or their promise broke.

    Raises:
        StoreWriteError: it could not be made durable; they are told again later.
    """
    engine, model = core.engine, core.model
    names = engine.take_urgent(most) if only_urgent else engine.take_untold(most)
    if not names:
        return 0
    planner = engine.planner(core.clock.now())
    told = list(waits(planner, names, examples=False))
    wanted = core.wanted
    try:
        with core.transaction() as tx:
            for wait in told:
                _wait(core, tx, wait)
    except BaseException:
        engine.retell(names)
        raise
    acknowledge(planner, told)
    moved = []
    for wait in told:
        earlier = model.waits.get(wait.workload)
        model.waits[wait.workload] = wait
        if earlier is None or _shown(earlier) != _shown(wait):
            moved.append(wait.workload)
    core.watchers.notify(moved)
    # What somebody is told changes nothing that placement looks at.
    core.wanted = wanted
    return len(names)


def wait_of(core: Core, record: Workload) -> Wait | None:
    """Return what *record* waits for as of now; None: it does not, or is not looked at."""
    if record.state not in WAITING:
        return None
    now = core.clock.now()
    if core.engine.is_told(record.id):
        wait = core.model.waits.get(record.id)
    else:
        planner = core.engine.planner(now)
        wait = next(waits(planner, [record.id], examples=False), None)
    if wait is None:
        return None
    why = with_likely_ends(wait.explanation, core.model.runs, now=now.timestamp())
    return wait if why is wait.explanation else replace(wait, explanation=why)


def _wait(core: Core, tx: Transaction, wait: Wait) -> None:
    """Keep what the workload waits for; its timeline tells changes only."""
    record = tx.workload(wait.workload)
    fresh = record.state is State.REQUESTED
    if fresh:
        record = tx.advance(record, Event.ADMITTED)
    if wait.broken is not None:
        record = tx.record(record, TimelineKind.NOTE, explanation=wait.broken)
    if fresh or _cause(record.explanation) != _cause(wait.explanation):
        record = replace(record, explanation=wait.explanation)
        record = tx.record(record, TimelineKind.WAITING, explanation=wait.explanation)
    bound = wait.no_later_than
    outset = outset_of(
        record.outset,
        now=tx.now.timestamp(),
        bound=bound,
        is_anew=wait.broken is not None,
    )
    if outset is not None and outset is not record.outset:
        outset = core.model.history.saying(record.choice.class_name or "", outset)
    kept = (bound, wait.reservation, outset)
    if (record.promise, record.reservation, record.outset) != kept:
        tx.put(
            replace(record, promise=bound, reservation=wait.reservation, outset=outset)
        )


def _cause(explanation: Explanation | None) -> Iterable[object]:
    """Return what a change of the timeline's entry depends on; numbers may move."""
    if explanation is None:
        return ()
    holders = sorted(holder.workload for holder in explanation.holders)
    return (explanation.reason, explanation.machine, *holders)


def _shown(wait: Wait) -> tuple[object, ...]:
    return wait.position, wait.explanation, wait.no_later_than
