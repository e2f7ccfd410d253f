"""What an agent says about its allocations, taken into the truth.

A report or an inventory item says how far an allocation is.  Steps that it implies
are taken in order, so that the timeline is whole even when messages were missed.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from fleet_contracts.allocations import TRANSITIONS, Event, State
from fleet_contracts.language import mark
from fleet_contracts.protocol import AgentEvent, Forget
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress, TimelineKind
from fleet_hub.controller import audit, copying, lifecycle
from fleet_hub.controller.addresses import route_of
from fleet_hub.controller.agents_word import own_word, plausible
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole, TargetKind
from fleet_hub.controller.core import Core, Transaction
from fleet_hub.controller.records import Assignment, Home, StopIntent, Workload
from fleet_hub.controller.scrubbing import scrubbed, scrubbed_progress
from fleet_hub.controller.setbacks import Setbacks, setback_of
from fleet_hub.controller.time_limits import told_whose


_FORWARD: Final = (Event.ACCEPTED, Event.PREPARED, Event.SERVING)
_EVENTS: Final = {
    AgentEvent.ACCEPTED: Event.ACCEPTED,
    AgentEvent.PREPARED: Event.PREPARED,
    AgentEvent.SERVING: Event.SERVING,
    AgentEvent.REJECTED: Event.REJECTED,
    AgentEvent.ENDED: Event.ENDED,
    AgentEvent.FAILED: Event.FAILED,
}
OVER: Final = frozenset({AgentEvent.REJECTED, AgentEvent.ENDED, AgentEvent.FAILED})
"""After these the machine holds nothing of the allocation."""
CONTROLLER: Final = "controller"
"""As whom the audit log names it where nobody told it to."""
MOST_STEPS: Final = 20
"""Of one workload, between two writes of progress."""
_KINDS: Final = {
    State.PREPARING: TimelineKind.PREPARING,
    State.STARTING: TimelineKind.STARTING,
    State.READY: TimelineKind.READY,
}


def take_in(
    core: Core,
    tx: Transaction,
    record: Workload,
    event: AgentEvent,
    *,
    url: str | None = None,
    explanation: Explanation | None = None,
    at: datetime | None = None,
) -> Workload:
    """Move *record* to where its agent says it is.  Idempotent."""
    explanation = own_word(scrubbed(record, explanation))
    at = plausible(at, tx.now)
    if event in OVER:
        return _end(core, tx, record, event, explanation)
    if event is AgentEvent.STOPPING:
        return _stopping(core, tx, record, explanation)
    if event is AgentEvent.NOTE:
        explanation = copying.naming_source(record, explanation)
        return tx.record(
            record, TimelineKind.NOTE, actor="agent", explanation=explanation, at=at
        )
    if event is AgentEvent.SERVING:
        url = _route(core, record, url)
        if url is None:
            return _send_away(core, tx, record)
    if event in _EVENTS:
        return _forward(core, tx, record, _EVENTS[event], url=url, at=at)
    return record


def _route(core: Core, record: Workload, url: str | None) -> str | None:
    """Return where the Hub's proxy may go for what the machine has at *url*."""
    assignment = record.assignment
    if assignment is None or url is None:
        return None
    machine = core.model.machines[assignment.machine]
    return route_of(core, machine, url, known=record.url)


def _send_away(core: Core, tx: Transaction, record: Workload) -> Workload:
    """End a server at an address that nobody may be led to."""
    if record.stop is not None:
        return record
    explanation = Explanation(
        reason=Reason.START_FAILED,
        detail=mark("the machine gave an address that notebook traffic may not go to"),
    )
    intent = StopIntent(actor="controller", now=True, explanation=explanation)
    return lifecycle.ask_to_stop(core, tx, record, Event.STOP_ASKED, intent)


def _forward(
    core: Core,
    tx: Transaction,
    record: Workload,
    target: Event,
    *,
    url: str | None,
    at: datetime | None,
) -> Workload:
    if record.state is State.UNKNOWN:
        return _return(core, tx, record, target, url=url)
    for event in _FORWARD[: _FORWARD.index(target) + 1]:
        earlier = record.state
        record = tx.advance(record, event)
        if record.state is not earlier:
            record = _arrive(core, tx, record, url=url, at=at)
    return record


def _return(
    core: Core, tx: Transaction, record: Workload, target: Event, *, url: str | None
) -> Workload:
    """Find a workload again whose machine had been silent."""
    record = tx.advance(record, target)
    record = tx.record(record, TimelineKind.RETURNED, actor="agent")
    if record.state is not State.READY or record.ready_at is None:
        record = _arrive(core, tx, record, url=url, at=None)
    if record.stop is not None:
        record = tx.advance(record, Event.STOP_ASKED)
        lifecycle.tell_stop(tx, record)
    return record


def _arrive(
    core: Core,
    tx: Transaction,
    record: Workload,
    *,
    url: str | None,
    at: datetime | None,
) -> Workload:
    """Tell of a new state, and keep what a ready server is known by."""
    assignment = record.assignment
    if record.state is State.READY and assignment is not None:
        if record.is_copied:
            _note_copy(tx, record, assignment.machine)
        record = replace(
            record,
            url=url,
            origin=None,
            ready_at=tx.now,
            explanation=None,
            promise=None,
            outset=None,
            home=Home(
                machine=assignment.machine,
                driver=assignment.runtime.driver,
                class_name=assignment.class_name,
            ),
        )
        _went_well(core, assignment.machine)
        # The server has what it needs; from here on nobody else does.
        tx.change.secrets[record.id] = None
    kind = _KINDS.get(record.state)
    if kind is None:
        return tx.put(record)
    return tx.record(record, kind, actor="agent", at=at)


def _note_copy(tx: Transaction, record: Workload, machine: str) -> None:
    """Write down that somebody's files are on two machines from here on."""
    origin = record.origin
    audit.note(
        tx,
        Actor(name=record.principal.name, role=ActorRole.USER),
        Action.FILES_COPIED,
        record.id,
        kind=TargetKind.WORKLOAD,
        detail=f"from {origin.home.machine if origin else ''} to {machine}",
    )


def _stopping(
    core: Core, tx: Transaction, record: Workload, explanation: Explanation | None
) -> Workload:
    """The agent itself began the end: a time limit, or its owner's wish."""
    intent = record.stop or StopIntent(
        actor="agent",
        explanation=explanation or Explanation(reason=Reason.STOPPED_BY_ADMIN),
    )
    intent = replace(intent, explanation=told_whose(core, record, intent.explanation))
    earlier = record.state
    record = tx.advance(record, Event.STOP_ASKED, stop=intent)
    if record.state is earlier:
        return record
    return tx.record(
        record,
        TimelineKind.STOPPING,
        actor="agent",
        explanation=intent.explanation,
    )


def _end(
    core: Core,
    tx: Transaction,
    record: Workload,
    event: AgentEvent,
    explanation: Explanation | None,
) -> Workload:
    """Give back what the machine itself says is free."""
    assignment = record.assignment
    if assignment is None:
        return record
    tx.tell(
        assignment.machine,
        Forget(allocation=assignment.allocation, epoch=assignment.epoch),
    )
    meant = _EVENTS[event]
    if TRANSITIONS[record.state][meant] is None:
        # A late "no" of something that had begun: it is over all the same.
        meant = Event.FAILED
    if meant is Event.REJECTED and record.stop is None:
        return _rejected(core, tx, record, explanation)
    if meant is Event.REJECTED:
        record = tx.advance(record, Event.STOP_ASKED)
    over = lifecycle.finish(
        core,
        tx,
        record,
        meant,
        actor="agent",
        explanation=_why(record, explanation),
    )
    tx.change.issued[assignment.allocation] = None
    if record.ready_at is None and record.stop is None:
        _went_wrong(core, tx, record, explanation)
    return over


def _went_well(core: Core, machine: str) -> None:
    """Count anew: a start on *machine* has become a server that answers."""
    if core.model.setbacks.pop(machine, None) is not None:
        core.model.stirred.add(machine)


def _went_wrong(
    core: Core, tx: Transaction, record: Workload, why: Explanation | None
) -> None:
    """Set the machine aside if too many starts in a row went wrong there."""
    assignment = record.assignment
    if assignment is None:
        return
    machine = assignment.machine
    reason = Reason.START_FAILED if why is None else why.reason
    earlier = core.model.setbacks.get(machine, Setbacks())
    setbacks = earlier.after(setback_of(record, reason, tx.now))
    core.model.setbacks[machine] = setbacks
    if setbacks.until == earlier.until:
        return
    core.model.stirred.add(machine)
    audit.note(
        tx,
        Actor(name=CONTROLLER, role=ActorRole.CONTROLLER),
        Action.SET_ASIDE,
        machine,
        detail=f"until {setbacks.until:%Y-%m-%d %H:%M} UTC, the last for {reason.value}",
    )


def _why(record: Workload, explanation: Explanation | None) -> Explanation | None:
    """Prefer who asked for the end to how the process took it."""
    return record.stop.explanation if record.stop is not None else explanation


def _rejected(
    core: Core,
    tx: Transaction,
    record: Workload,
    explanation: Explanation | None,
) -> Workload:
    """Keep the place, and let this machine rest for this workload."""
    assignment = record.assignment
    explanation = explanation or Explanation(reason=Reason.AGENT_REJECTED)
    rejected_by = dict(record.rejected_by)
    if assignment is not None and not _is_about_a_device(core, assignment, explanation):
        rejected_by[assignment.machine] = explanation.reason
        core.model.rest(record.id, assignment.machine, tx.now)
    back = lifecycle.back_in_line(
        core,
        tx,
        record,
        Event.REJECTED,
        explanation=explanation,
        rejected_by=rejected_by,
        rejections=record.rejections + 1,
    )
    if assignment is not None:
        tx.change.issued[assignment.allocation] = None
        _went_wrong(core, tx, record, explanation)
    return tx.put(replace(back, explanation=explanation))


def _is_about_a_device(
    core: Core, assignment: Assignment, explanation: Explanation
) -> bool:
    """Whether a device alone was refused of which is known that others use it.

    It is not given again meanwhile, so the machine's others may be tried at once.
    """
    used = dict(core.model.presence[assignment.machine].used_outside)
    return explanation.reason is Reason.FOREIGN_PROCESS and not used.keys().isdisjoint(
        assignment.resources.devices
    )


def progress(core: Core, record: Workload, latest: Progress, at: datetime) -> None:
    """Show how far a step is; written together with others, twice a second at most."""
    if record.stop is not None:
        return
    steps = core.model.progress.setdefault(record.id, {})
    if latest.step in steps or len(steps) < MOST_STEPS:
        steps[latest.step] = (scrubbed_progress(record, latest), at)


def write_progress(core: Core) -> None:
    """Write the latest progress of every workload that made some."""
    pending, core.model.progress = core.model.progress, {}
    if not pending:
        return
    wanted = core.wanted
    with core.transaction() as tx:
        for name, steps in pending.items():
            if name not in core.model.workloads:
                continue
            for latest, at in steps.values():
                tx.record(
                    tx.workload(name),
                    TimelineKind.PROGRESS,
                    actor="agent",
                    progress=latest,
                    at=at,
                )
    # Progress changes nothing that placement looks at.
    core.wanted = wanted
