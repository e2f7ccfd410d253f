"""Asking whoever holds something to release it: a word, and nothing more.

Whoever waits may ask each of those whom they are told to wait for, once.  The ask is
durable together with the entry that the holder reads and the one that the asker does.
It stops nothing, moves no promise and gives no place: what becomes of it is the
holder's decision.
"""

from __future__ import annotations

from dataclasses import replace

from fleet_contracts.language import mark
from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import audit
from fleet_hub.controller.audit_entry import Action, Actor, TargetKind
from fleet_hub.controller.core import Core
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.model import WAITING
from fleet_hub.controller.records import Assignment, ReleaseAsk, Workload
from fleet_hub.controller.states import handle_of
from fleet_hub.scheduling.holders import MOST_ASKERS
from fleet_hub.scheduling.releasing import held_up_by


def ask(core: Core, record: Workload, handle: str, *, by: Actor) -> ReleaseAsk:
    """Ask the holder of *handle* for what *record* waits for.  Idempotent.

    Raises:
        RequestRefusedError: it does not wait for that, or not any more.
    """
    if record.state not in WAITING or record.stop is not None:
        raise _refused(mark("It does not wait in the line any more."))
    found = _holding(core, handle)
    if found is None:
        raise _refused(_NOT_WAITED_FOR)
    holder, assignment = found
    known = {one.user_id: one for one in assignment.asked}
    user_id = record.principal.user_id
    if user_id in known:
        return known[user_id]
    blocking = _held_up_by(core, record, assignment.machine, handle)
    if blocking is None and len(known) >= MOST_ASKERS:
        raise _refused(mark("Enough others have asked for this already."))
    if blocking is None:
        raise _refused(_NOT_WAITED_FOR)
    with core.transaction() as tx:
        asked = ReleaseAsk(user_id=user_id, at=tx.now)
        holder = replace(
            holder, assignment=replace(assignment, asked=(*assignment.asked, asked))
        )
        is_named = core.settings.names_visible
        tx.record(
            holder,
            TimelineKind.NOTE,
            actor="user",
            explanation=Explanation(
                reason=Reason.RELEASE_WISHED,
                subject=record.principal.name if is_named else None,
            ),
        )
        tx.record(
            record,
            TimelineKind.NOTE,
            actor=by.role.value,
            explanation=Explanation(
                reason=Reason.RELEASE_ASKED,
                machine=assignment.machine,
                holders=(blocking.model_copy(update={"handle": None}),),
            ),
        )
        audit.note(
            tx,
            by,
            Action.RELEASE_ASKED,
            record.id,
            kind=TargetKind.WORKLOAD,
            detail=f"{holder.principal.name}/{holder.server_name}",
        )
    return asked


_NOT_WAITED_FOR = mark(
    "It does not wait for this, or not any more: look again at who holds it up."
)


def _refused(detail: str) -> RequestRefusedError:
    return RequestRefusedError(
        Explanation(reason=Reason.INVALID_REQUEST, subject="holder", detail=detail)
    )


def _holding(core: Core, handle: str) -> tuple[Workload, Assignment] | None:
    """Return what holds something by the name of *handle*; None: it has ended."""
    for record in core.model.workloads.values():
        assignment = record.assignment
        if record.holds and assignment and handle_of(assignment.allocation) == handle:
            return record, assignment
    return None


def _held_up_by(
    core: Core, record: Workload, machine: str, handle: str
) -> Holder | None:
    planner = core.engine.planner(core.clock.now())
    waiter = planner.waiters.get(record.id)
    if waiter is None:
        return None
    return held_up_by(planner, waiter, machine, handle)
