"""Ending: the intent is durable first, and the end is what the machine confirms."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fleet_contracts.allocations import ENDED, Event
from fleet_contracts.language import mark
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import audit, lifecycle
from fleet_hub.controller.audit_entry import Action, Actor, TargetKind
from fleet_hub.controller.core import Core
from fleet_hub.controller.errors import RequestRefusedError, UnknownWorkloadError
from fleet_hub.controller.model import WAITING
from fleet_hub.controller.records import StopIntent, Workload


_STOPPED_BY: Final = {
    "user": Reason.STOPPED_BY_USER,
    "admin": Reason.STOPPED_BY_ADMIN,
    "hub": Reason.STOPPED_BY_HUB,
}


def stop(core: Core, record: Workload, *, by: str = "user", now: bool = False) -> None:
    """Ask for the end of *record*, durably.  Idempotent; ``now`` hurries a slow end."""
    reason = _STOPPED_BY.get(by, Reason.STOPPED_BY_USER)
    intent = StopIntent(actor=by, now=now, explanation=Explanation(reason=reason))
    with core.transaction() as tx:
        if record.stop is not None:
            hurried = replace(record.stop, now=record.stop.now or now)
            lifecycle.tell_stop(tx, tx.put(replace(record, stop=hurried)))
        elif record.state not in ENDED:
            lifecycle.ask_to_stop(core, tx, record, Event.STOP_ASKED, intent)


def leave(
    core: Core, record: Workload, *, actor: str = "user", by: Actor | None = None
) -> None:
    """Leave the line, or give up what is not ready yet.  Idempotent.

    With *by* it is somebody's action on a page, which goes into the audit log.

    Raises:
        RequestRefusedError: it is ready, so it has to be stopped instead.
    """
    if record.state in ENDED or record.stop is not None:
        return
    if record.ready_at is not None:
        raise RequestRefusedError(
            Explanation(
                reason=Reason.INVALID_REQUEST,
                detail=mark("The server runs already: stop it instead."),
            )
        )
    intent = StopIntent(
        actor=actor, explanation=Explanation(reason=Reason.LEFT_THE_LINE)
    )
    with core.transaction() as tx:
        lifecycle.ask_to_stop(core, tx, record, Event.LEFT, intent)
        if by is not None:
            audit.note(
                tx,
                by,
                Action.LEFT_THE_LINE,
                record.id,
                kind=TargetKind.WORKLOAD,
                detail=f"{record.principal.name}/{record.server_name}",
            )


def retire(core: Core, record: Workload) -> None:
    """Forget a deleted server: its key at once where nothing is held, else at its end.

    The files on the machine stay.
    """
    intent = StopIntent(actor="hub", explanation=Explanation(reason=Reason.RETIRED))
    with core.transaction() as tx:
        record = tx.put(replace(record, retired=True))
        if record.state in ENDED:
            tx.change.workloads.pop(record.id)
            tx.change.removed.add(record.id)
        elif record.stop is None:
            lifecycle.ask_to_stop(core, tx, record, Event.STOP_ASKED, intent)


def park(core: Core, name: str) -> bool:
    """Let the Hub go and keep the place; False: it does not wait any more."""
    record = core.model.workloads.get(name)
    if record is None or record.state not in WAITING:
        return False
    with core.transaction() as tx:
        tx.record(
            tx.put(replace(record, parked=True)),
            TimelineKind.PARKED,
            actor="hub",
            explanation=Explanation(reason=Reason.PLACE_KEPT),
        )
    return True


def declare_lost(core: Core, machine: str, *, actor: Actor | None = None) -> None:
    """An admin's word that nothing runs on *machine* any more, whatever it may say.

    Raises:
        UnknownWorkloadError: there is no such machine.
    """
    if machine not in core.model.machines:
        raise UnknownWorkloadError(machine)
    lost = Explanation(reason=Reason.MACHINE_LOST, machine=machine)
    with core.transaction() as tx:
        if actor is not None:
            audit.note(tx, actor, Action.DECLARED_LOST, machine)
        # If it comes back its address is tried anew: another may have it by then.
        tx.change.machines[machine] = replace(
            core.model.machines[machine], address=None, address_fault=None
        )
        for record in list(core.model.holders(machine)):
            if record.assignment is not None and not record.assignment.launched:
                lifecycle.back_in_line(
                    core, tx, record, Event.WITHDRAWN, explanation=lost
                )
                continue
            lifecycle.finish(
                core, tx, record, Event.MACHINE_LOST, actor="admin", explanation=lost
            )
