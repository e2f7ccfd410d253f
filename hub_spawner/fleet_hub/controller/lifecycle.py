"""The steps that several use cases share: launch, release, finish.

What is held and what is scrubbed is decided here and nowhere else.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, Final

from fleet_contracts.allocations import ENDED, Event
from fleet_contracts.catalog import Catalog, Deadlines
from fleet_contracts.protocol import Launch, Stop
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_contracts.workloads import WorkloadSpec
from fleet_hub.controller import copying
from fleet_hub.controller.core import Core, Transaction
from fleet_hub.controller.records import Assignment, Secrets, StopIntent, Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.controller.spans import span_of
from fleet_hub.scheduling.likely_ends import Ran


TOKEN_VARIABLE: Final = "JUPYTERHUB_FLEET_TIMELINE_TOKEN"  # noqa: S105 - a name
URL_VARIABLE: Final = "JUPYTERHUB_FLEET_URL"


def hash_of(token: str) -> str:
    """Return what is stored in place of *token*."""
    return hashlib.sha256(token.encode()).hexdigest()


def launch(core: Core, tx: Transaction, record: Workload) -> None:
    """Tell the machine to run *record*; repeated until it has reported."""
    secrets, assignment = tx.secrets(record.id), record.assignment
    if secrets is None or assignment is None:
        return
    if record.is_copied and copying.is_too_old(core, assignment.machine):
        # It would begin with an empty folder, since it does not know of copies.
        too_old = Explanation(reason=Reason.AGENT_TOO_OLD)
        order = (assignment.allocation, assignment.epoch)
        stop = Stop(allocation=order[0], epoch=order[1], explanation=too_old)
        tx.tell(assignment.machine, stop)
        return
    tx.tell(
        assignment.machine,
        Launch(
            allocation=assignment.allocation,
            epoch=assignment.epoch,
            spec=launch_spec(
                record, assignment, secrets, core.catalogs.current(), core.settings
            ),
        ),
    )


def ends_by(
    core: Core, tx: Transaction, record: Workload, assignment: Assignment
) -> float | None:
    """Return by when *record*, which is launched now, has ended however slowly it starts.

    What was reckoned at the placement holds if its hand-over took no longer than that.
    """
    if assignment.limit_seconds is None or assignment.ends_by is None:
        return None
    profile = core.catalogs.current().profile_named(record.choice.profile)
    deadlines = profile.deadlines if profile else Deadlines()
    steps = deadlines.prepare_seconds + deadlines.start_seconds + deadlines.stop_seconds
    latest = tx.now.timestamp() + steps + assignment.limit_seconds
    return max(assignment.ends_by, latest)


def launch_spec(
    record: Workload,
    assignment: Assignment,
    secrets: Secrets,
    catalog: Catalog,
    settings: Settings,
) -> WorkloadSpec:
    """Return all that the agent needs, the timeline token included."""
    profile = catalog.profile_named(record.choice.profile)
    deadlines = profile.deadlines if profile else Deadlines()
    chosen = catalog.class_named(assignment.class_name)
    return WorkloadSpec(
        owner=record.principal.name,
        owner_id=record.principal.user_id,
        server_name=record.server_name,
        notebook=record.notebook,
        profile=record.choice.profile,
        class_name=assignment.class_name,
        runtime=assignment.runtime,
        resources=assignment.resources,
        environment=secrets.environment
        | {
            TOKEN_VARIABLE: secrets.timeline_token,
            URL_VARIABLE: settings.service_url,
        },
        arguments=secrets.arguments,
        prepare_seconds=deadlines.prepare_seconds,
        start_seconds=deadlines.start_seconds,
        stop_seconds=deadlines.stop_seconds,
        limit_seconds=assignment.limit_seconds,
        lease_seconds=chosen.lease_seconds if chosen else None,
        copy_order=copying.copy_order(record, limit_bytes=settings.copy_limit_bytes),
    )


def tell_stop(tx: Transaction, record: Workload) -> None:
    """Tell the machine to end *record*; repeated until it has confirmed."""
    assignment, stop = record.assignment, record.stop
    if assignment is None or stop is None:
        return
    tx.tell(
        assignment.machine,
        Stop(
            allocation=assignment.allocation,
            epoch=assignment.epoch,
            now=stop.now,
            explanation=stop.explanation,
        ),
    )


def release(core: Core, tx: Transaction, record: Workload) -> Workload:
    """Give back what *record* holds.  Idempotent."""
    assignment = record.assignment
    if assignment is None:
        return record
    issued = core.model.issued.get(assignment.allocation)
    if issued is not None:
        # One that the agent never heard of leaves no trace; of any other the
        # machine may still speak.
        ended = replace(issued, open=False) if assignment.launched else None
        tx.change.issued[assignment.allocation] = ended
    if assignment.launched:
        tx.use(record)
    span = span_of(record, tx.now)
    if span is not None:
        tx.change.spans.append(span)
    ran = record.ran
    if record.ready_at is not None:
        seconds = max(0.0, (tx.now - assignment.since).total_seconds())
        ran = Ran(tx.now.timestamp(), seconds, assignment.class_name)
    return tx.put(replace(record, assignment=None, url=None, ran=ran))


def back_in_line(
    core: Core,
    tx: Transaction,
    record: Workload,
    event: Event,
    *,
    explanation: Explanation | None = None,
    **changes: Any,
) -> Workload:
    """Take a placement back; the place in the line is kept."""
    record = release(core, tx, tx.advance(record, event, **changes))
    return tx.record(record, TimelineKind.WAITING, explanation=explanation)


def finish(
    core: Core,
    tx: Transaction,
    record: Workload,
    event: Event,
    *,
    actor: str = "controller",
    explanation: Explanation | None = None,
) -> Workload:
    """End a generation: give everything back, scrub its secrets, revoke its token.

    Raises:
        IllegalTransitionError: *event* cannot end it now.
    """
    record = tx.advance(record, event)
    if record.state not in ENDED:
        message = f"{event} does not end a workload"
        raise ValueError(message)
    kind = TimelineKind(record.state.value)
    # The entry is written before the machine is forgotten: it says where it was.
    record = tx.record(record, kind, actor=actor, explanation=explanation)
    record = release(core, tx, record)
    tx.change.secrets[record.id] = None
    core.model.progress.pop(record.id, None)
    record = tx.put(copying.go_back(record))
    if record.retired:
        tx.change.workloads.pop(record.id, None)
        tx.change.events = [item for item in tx.change.events if item[0] != record.id]
        tx.change.secrets.pop(record.id, None)
        tx.change.removed.add(record.id)
        return record
    return tx.put(
        replace(
            record,
            explanation=explanation,
            parked=False,
            absent=False,
            stop=None,
            ready_at=None,
            promise=None,
            outset=None,
            token_hash=None,
            rejected_by={},
            rejections=0,
        )
    )


def ask_to_stop(
    core: Core,
    tx: Transaction,
    record: Workload,
    event: Event,
    intent: StopIntent,
) -> Workload:
    """Begin the end of *record*; what no agent was told of ends at once.

    Raises:
        IllegalTransitionError: *event* cannot happen now.
    """
    assignment = record.assignment
    if record.holds and assignment is not None and assignment.launched:
        stopping = tx.advance(record, event, stop=intent)
        if stopping.state is not record.state:
            stopping = tx.record(
                stopping,
                TimelineKind.STOPPING,
                actor=intent.actor,
                explanation=intent.explanation,
            )
        tell_stop(tx, stopping)
        return stopping
    if record.holds:
        record, event = tx.advance(record, event), Event.ENDED
    return finish(
        core, tx, record, event, actor=intent.actor, explanation=intent.explanation
    )
