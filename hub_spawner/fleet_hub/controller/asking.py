"""Asking for a server: a new generation, the same place again, or a claimed turn."""

from __future__ import annotations

import re
from dataclasses import replace

from fleet_contracts.allocations import ENDED, Event, State
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_contracts.workloads import Choice, Principal
from fleet_hub.admission import Ask
from fleet_hub.controller import lifecycle
from fleet_hub.controller.core import Core, Transaction
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.model import WAITING
from fleet_hub.controller.records import Secrets, Workload
from fleet_hub.scheduling.choice import resolve


_LAUNCHED_EARLY = frozenset({State.PLACED, State.PREPARING})
"""The states in which the agent still takes a new environment."""


def ask(core: Core, request: Ask) -> Workload:
    """Take *request* in: durable, in the line or attended where it already is.

    Asking again with the same choice keeps the place; a new attempt brings a new
    environment.  A server that is being stopped must end first: see ``attendance``.

    Raises:
        RequestRefusedError: the choice is wrong or not allowed.
    """
    record = core.model.by_key(request.key)
    choice, fault = checked(core, request)
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
    named = {"profile": found.profile.name, "class": found.chosen.name}
    return Choice.model_validate(named), None


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
    record = Workload(
        id=name,
        key=request.key,
        generation=earlier.generation + 1 if earlier else 1,
        principal=request.principal,
        server_name=request.server_name,
        notebook=earlier.notebook if earlier else folder_name(request.principal, name),
        choice=choice,
        state=State.REQUESTED,
        line=core.model.next_line(),
        asked_at=tx.now,
        attempt=request.attempt,
        home=earlier.home if earlier else None,
        token_hash=lifecycle.hash_of(token),
        last_seq=earlier.last_seq if earlier else 0,
    )
    tx.change.secrets[name] = Secrets(
        environment=request.environment,
        arguments=request.arguments,
        timeline_token=token,
    )
    return tx.record(record, TimelineKind.ASKED, actor="user")


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
    if assignment is not None and claims:
        record = tx.put(
            replace(
                record,
                assignment=replace(assignment, launched=True, claim_by=None),
            )
        )
        lifecycle.launch(core, tx, record)
    elif new and record.state in _LAUNCHED_EARLY and record.stop is None:
        lifecycle.launch(core, tx, record)
    return record


def _follow_rename(core: Core, tx: Transaction, principal: Principal) -> None:
    """Take over a user's new name; who had that name before has it no more.

    Pages are guarded by name, since that is all the Hub tells about a visitor.
    """
    for record in list(core.model.workloads.values()):
        same_user = record.principal.user_id == principal.user_id
        if same_user and record.principal != principal:
            tx.put(replace(record, principal=principal))
        elif not same_user and record.principal.name == principal.name:
            nobody = record.principal.model_copy(update={"name": ""})
            tx.put(replace(record, principal=nobody))


def folder_name(principal: Principal, workload: str) -> str:
    """Return a name for the notebook folder: safe in a path, and never used before.

    The user's name in it is for people only.  The Hub gives the ids of deleted users
    and servers out again, so they must not lead to anybody's files.
    """
    readable = re.sub(r"[^a-z0-9]+", "-", principal.name.lower()).strip("-")[:30]
    return f"{readable.strip('-') or 'user'}-{workload}"
