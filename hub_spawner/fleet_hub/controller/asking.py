"""Asking for a server: a new generation, the same place again, or a claimed turn."""

from __future__ import annotations

import re
from dataclasses import replace

from fleet_contracts.allocations import ENDED, Event, State
from fleet_contracts.language import mark
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_contracts.workloads import Choice, Principal
from fleet_hub.admission import Ask
from fleet_hub.controller import copying, entitled, lifecycle
from fleet_hub.controller.core import Core, Transaction
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.model import WAITING
from fleet_hub.controller.records import MachineRecord, Origin, Secrets, Workload
from fleet_hub.controller.states import pin_of
from fleet_hub.scheduling.choice import resolve
from fleet_hub.scheduling.explain import what_if


_LAUNCHED_EARLY = frozenset({State.PLACED, State.PREPARING, State.STARTING})
"""The states in which the agent still takes a new environment: nothing answers yet."""


def ask(core: Core, request: Ask) -> Workload:
    """Take *request* in: durable, in the line or attended where it already is.

    Asking again with the same choice keeps the place; a new attempt brings a new
    environment.  A server that is being stopped must end first: see ``attendance``.

    Raises:
        RequestRefusedError: the choice is wrong or not allowed.
    """
    record = core.model.by_key(request.key)
    choice, fault = checked(core, request)
    fault = fault or _copy_fault(core, request, choice, record)
    with core.transaction() as tx:
        _follow_rename(core, tx, request.principal)
        if record is not None:
            record = tx.workload(record.id)
        if fault is not None:
            if record is not None and record.state in WAITING:
                lifecycle.finish(core, tx, record, Event.REFUSED, explanation=fault)
        elif record is None or record.state in ENDED:
            record = _begin(core, tx, request, choice, record)
        elif record.choice != choice and not _is_launched(record):
            record = _ask_anew(core, tx, request, choice, record)
        else:
            record = _ask_again(core, tx, request, record)
    if fault is not None or record is None:
        raise RequestRefusedError(fault or Explanation(reason=Reason.INVALID_REQUEST))
    return core.model.workloads[record.id]


def checked(core: Core, request: Ask) -> tuple[Choice, Explanation | None]:
    """Return the choice with its class named, or why it may not be asked for."""
    asked = request.choice
    found = resolve(
        core.catalogs.current(), request.principal, asked.profile, asked.class_name
    )
    if isinstance(found, Explanation):
        return asked, found
    named = {
        "profile": found.profile.name,
        "class": found.chosen.name,
        "files": asked.files,
    }
    return Choice.model_validate(named), None


def _copy_fault(
    core: Core, request: Ask, choice: Choice, record: Workload | None
) -> Explanation | None:
    """Return why a copy that is asked for is not to be had; one that is away may come."""
    if choice.files != "copy" or record is None:
        return None
    earlier = copying.go_back(record)
    if earlier.home is None or not _begins_elsewhere(core, request, choice, earlier):
        return None
    fault = copying.obstacle(core, earlier.home)
    return None if fault and fault.reason is Reason.COPY_SOURCE_AWAY else fault


def _begins_elsewhere(
    core: Core, request: Ask, choice: Choice, earlier: Workload | None
) -> bool:
    """Return whether to leave the files' machine: asked for, and of use only then.

    Where the files' machine may run the choice the wish changes nothing, so that one
    that is repeated with each start never loses sight of the files it began with.
    """
    if earlier is None or earlier.home is None or choice.files is None:
        return False
    verdict = what_if(
        core.engine.planner(core.clock.now()),
        request.principal,
        choice.profile,
        choice.class_name,
        pin=pin_of(earlier.home),
    )
    return not verdict.choosable


def _is_launched(record: Workload) -> bool:
    return record.assignment is not None and record.assignment.launched


def _begin(
    core: Core,
    tx: Transaction,
    request: Ask,
    choice: Choice,
    earlier: Workload | None,
) -> Workload:
    """Begin a generation at the end of the line."""
    name = earlier.id if earlier else core.ids.workload()
    token = core.ids.token()
    generation = earlier.generation + 1 if earlier else 1
    left = earlier.home if earlier else None
    leaves = _begins_elsewhere(core, request, choice, earlier)
    if earlier is None or leaves:
        folder = name if earlier is None else f"{name}-{generation}"
        notebook = folder_name(request.principal, folder)
    else:
        notebook = earlier.notebook
    record = Workload(
        id=name,
        key=request.key,
        generation=generation,
        principal=request.principal,
        server_name=request.server_name,
        notebook=notebook,
        choice=choice,
        profile_version=version_of(core, choice),
        state=State.REQUESTED,
        line=core.model.next_line(),
        asked_at=tx.now,
        attempt=request.attempt,
        waited=earlier.waited if earlier else None,
        ran=earlier.ran if earlier else None,
        decided=earlier.decided if earlier else None,
        home=None if leaves else left,
        token_hash=lifecycle.hash_of(token),
        last_seq=earlier.last_seq if earlier else 0,
    )
    if leaves and left is not None and earlier is not None:
        record = _depart(core, record, Origin(home=left, notebook=earlier.notebook))
    tx.change.secrets[name] = Secrets(
        environment=request.environment,
        arguments=request.arguments,
        timeline_token=token,
    )
    record = tx.record(record, TimelineKind.ASKED, actor="user")
    if not leaves or left is None:
        return record
    if record.is_copied:
        to_copy = Explanation(reason=Reason.FILES_TO_COPY, machine=left.machine)
        return tx.record(record, TimelineKind.NOTE, explanation=to_copy)
    stay = Explanation(
        reason=Reason.DATA_NOT_LOCAL,
        machine=left.machine,
        detail=mark(
            "this start begins with an empty folder; the earlier files stay there"
        ),
    )
    return tx.record(record, TimelineKind.NOTE, explanation=stay)


def _depart(core: Core, record: Workload, origin: Origin) -> Workload:
    """Return *record* as one that goes back to *origin* unless it gets ready elsewhere."""
    record = replace(record, origin=origin)
    avoided = copying.unfit(core) if record.is_copied else {}
    return replace(record, rejected_by=avoided)


def _ask_anew(
    core: Core, tx: Transaction, request: Ask, choice: Choice, record: Workload
) -> Workload:
    """Give up the place for another choice."""
    left = Explanation(reason=Reason.LEFT_THE_LINE)
    event = Event.LEFT
    if record.holds:
        record, event = tx.advance(record, event), Event.ENDED
    record = lifecycle.finish(core, tx, record, event, actor="user", explanation=left)
    return _begin(core, tx, request, choice, record)


def _ask_again(core: Core, tx: Transaction, request: Ask, record: Workload) -> Workload:
    """Attend what is there, with a new environment where that is still possible."""
    assignment, new = record.assignment, request.attempt != record.attempt
    claims = assignment is not None and not assignment.launched
    secrets = tx.secrets(record.id)
    if new and secrets is not None:
        tx.change.secrets[record.id] = replace(
            secrets, environment=request.environment, arguments=request.arguments
        )
    record = tx.put(
        replace(
            record,
            principal=request.principal,
            server_name=request.server_name,
            attempt=request.attempt,
            parked=False,
        )
    )
    refusal = entitled.refusal_now(core, record) if claims else None
    if refusal is not None:
        # It looks for another place, or is refused, as if it asked now.
        return lifecycle.back_in_line(
            core, tx, record, Event.REJECTED, explanation=refusal
        )
    if assignment is not None and claims:
        record = tx.put(
            replace(
                record,
                absent=True,
                assignment=replace(
                    assignment,
                    launched=True,
                    claim_by=None,
                    ends_by=lifecycle.ends_by(core, tx, record, assignment),
                ),
            )
        )
        lifecycle.launch(core, tx, record)
    elif new and record.state in _LAUNCHED_EARLY and record.stop is None:
        # The turn came between the Hub's look at what is left and this ask, for a start
        # whose link was not known to be closed yet: its token is void by now.
        lifecycle.launch(core, tx, record)
    return record


def _follow_rename(core: Core, tx: Transaction, principal: Principal) -> None:
    """Take over a user's new name; who had that name before has it no more.

    Pages are guarded by name, since that is all the Hub tells about a visitor.
    """
    for record in core.model.not_called(principal):
        same_user = record.principal.user_id == principal.user_id
        if same_user and record.retired:
            # Of a user who is gone, perhaps: the Hub gives ids out again.
            continue
        if same_user:
            tx.put(replace(record, principal=principal))
            if record.principal.name != principal.name:
                before = (principal.user_id, record.principal.name)
                tx.change.renamed[before] = principal.name
        else:
            nobody = record.principal.model_copy(update={"name": ""})
            tx.put(replace(record, principal=nobody))
    for machine in core.model.not_owned_as(principal):
        _follow_owner(tx, machine, principal)


def _follow_owner(
    tx: Transaction, machine: MachineRecord, principal: Principal
) -> None:
    """Leave a machine with the person who enrolled it, whatever their name is now.

    Somebody who got an earlier owner's name must not run programs on that machine.
    """
    known = machine.owner_id
    if known is None:
        owner = replace(machine, owner_id=principal.user_id)
    elif known == principal.user_id:
        owner = replace(machine, owner=principal.name)
    else:
        owner = replace(machine, owner="")
    tx.change.machines[machine.name] = owner


def version_of(core: Core, choice: Choice) -> str | None:
    """Return the version of the chosen profile, if the catalog still has it."""
    profile = core.catalogs.current().profile_named(choice.profile)
    return None if profile is None else profile.version


def folder_name(principal: Principal, workload: str) -> str:
    """Return a name for the notebook folder: safe in a path, and never used before.

    The user's name in it is for people only.  The Hub gives the ids of deleted users
    and servers out again, so they must not lead to anybody's files.
    """
    readable = re.sub(r"[^a-z0-9]+", "-", principal.name.lower()).strip("-")[:30]
    return f"{readable.strip('-') or 'user'}-{workload}"
