"""The admission cycle: look at the fleet once, decide, make it durable, tell."""

from __future__ import annotations

from dataclasses import replace

from fleet_contracts.allocations import Event, State
from fleet_contracts.reasons import Explanation
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import lifecycle
from fleet_hub.controller.core import Core, Transaction
from fleet_hub.controller.records import Assignment, Issued, Workload
from fleet_hub.controller.snapshots import snapshot
from fleet_hub.scheduling.decisions import Placement, Plan, Wait
from fleet_hub.scheduling.plan import plan


def run_cycle(core: Core) -> Plan:
    """Decide everything that can be decided now, and begin to carry it out.

    The whole plan is one change: its placements hold their resources, and their
    timelines say so, before any agent hears of them.
    """
    core.wanted = False
    decided = plan(snapshot(core))
    with core.transaction() as tx:
        for refusal in decided.refusals:
            lifecycle.finish(
                core,
                tx,
                tx.workload(refusal.workload),
                Event.REFUSED,
                explanation=refusal.explanation,
            )
        for placement in decided.placements:
            _place(core, tx, placement)
        for wait in decided.waits:
            _wait(tx, wait)
    _show_line(core, decided)
    # What this cycle itself changed needs no second look.
    core.wanted = False
    return decided


def _place(core: Core, tx: Transaction, placement: Placement) -> None:
    record = tx.workload(placement.workload)
    if record.state is State.REQUESTED:
        record = tx.advance(record, Event.ADMITTED)
    attended = core.is_attended(record.id)
    assignment = Assignment(
        machine=placement.machine,
        allocation=core.ids.allocation(),
        epoch=core.model.next_epoch(),
        runtime=placement.runtime,
        class_name=placement.class_name,
        resources=placement.resources,
        limit_seconds=placement.limit_seconds,
        since=tx.now,
        launched=attended,
    )
    tx.change.issued[assignment.allocation] = Issued(
        allocation=assignment.allocation,
        epoch=assignment.epoch,
        machine=assignment.machine,
        workload=record.id,
        generation=record.generation,
        resources=assignment.resources,
        driver=assignment.runtime.driver,
    )
    record = tx.advance(
        record, Event.PLACED, assignment=assignment, explanation=placement.note
    )
    record = tx.record(record, TimelineKind.PLACED)
    if placement.note is not None:
        record = tx.record(record, TimelineKind.NOTE, explanation=placement.note)
    if attended:
        lifecycle.launch(core, tx, record)


def _wait(tx: Transaction, wait: Wait) -> None:
    """Keep what the workload waits for; its timeline tells changes only."""
    record = tx.workload(wait.workload)
    fresh = record.state is State.REQUESTED
    if fresh:
        record = tx.advance(record, Event.ADMITTED)
    if wait.broken is not None:
        record = tx.record(record, TimelineKind.NOTE, explanation=wait.broken)
    if fresh or _differs(record, wait):
        record = replace(record, explanation=wait.explanation)
        record = tx.record(record, TimelineKind.WAITING, explanation=wait.explanation)
    if record.promise != wait.no_later_than:
        tx.put(replace(record, promise=wait.no_later_than))


def _differs(record: Workload, wait: Wait) -> bool:
    return _cause(record.explanation) != _cause(wait.explanation)


def _cause(explanation: Explanation | None) -> tuple[object, ...]:
    """Return what a change of the timeline's entry depends on; numbers may move."""
    if explanation is None:
        return ()
    holders = sorted(holder.workload for holder in explanation.holders)
    return (explanation.reason, explanation.machine, *holders)


def _show_line(core: Core, decided: Plan) -> None:
    """Wake whoever reads a workload whose place or reason is another now."""
    moved = []
    for wait in decided.waits:
        earlier = core.model.waits.get(wait.workload)
        core.model.waits[wait.workload] = wait
        if earlier is None or (earlier.position, earlier.explanation) != (
            wait.position,
            wait.explanation,
        ):
            moved.append(wait.workload)
    core.watchers.notify(moved)
