"""What people decide about a machine: whom it serves, whether it takes work.

Who may decide is judged before; here the decision is made durable, with its entry in
the audit log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from fleet_contracts.catalog import Relation
from fleet_contracts.language import mark
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller import audit, machines, stopping
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole
from fleet_hub.controller.core import Core
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.model import SecondLinks


BY_OWNER: Final = "its owner"
BY_ADMIN: Final = mark("an admin")
"""Who drains a machine, in the words that waiting users read: nobody's name."""
TELL_AGAIN: Final = timedelta(hours=1)


def drain(core: Core, actor: Actor, machine: str) -> None:
    """Let *machine* take nothing new; what runs there runs on.  Idempotent."""
    record = core.model.machines[machine]
    by = BY_OWNER if actor.role is ActorRole.OWNER else BY_ADMIN
    if record.draining_by in {by, BY_ADMIN}:
        return
    with core.transaction() as tx:
        tx.change.machines[machine] = replace(record, draining_by=by)
        audit.note(tx, actor, Action.DRAINED, machine)


def resume(core: Core, actor: Actor, machine: str) -> None:
    """Let *machine* take work again, drained or set aside.  Idempotent.

    Raises:
        RequestRefusedError: an admin drains it, and its owner asks.
    """
    record = core.model.machines[machine]
    is_set_aside = core.model.set_aside_until(machine, core.clock.now()) is not None
    if record.draining_by is None and not is_set_aside:
        return
    if record.draining_by == BY_ADMIN and actor.role is ActorRole.OWNER:
        raise RequestRefusedError(
            Explanation(
                reason=Reason.INVALID_REQUEST,
                subject="resume",
                detail=mark(
                    "An admin drains this machine, so only an admin can resume it."
                ),
            )
        )
    with core.transaction() as tx:
        tx.change.machines[machine] = replace(record, draining_by=None)
        audit.note(tx, actor, Action.RESUMED, machine)
        if is_set_aside:
            core.model.setbacks.pop(machine, None)
            core.model.stirred.add(machine)


def set_audience(core: Core, actor: Actor, machine: str, relation: Relation) -> None:
    """Let *machine* serve people as far as *relation*, by an admin's word."""
    with core.transaction() as tx:
        record = core.model.machines[machine]
        tx.change.machines[machine] = replace(record, admin_allows=relation)
        audit.note(tx, actor, Action.AUDIENCE_SET, machine, detail=relation.value)


def set_lending(core: Core, actor: Actor, machine: str, relation: Relation) -> None:
    """Let *machine* serve people as far as *relation*, by its owner's word."""
    with core.transaction() as tx:
        record = core.model.machines[machine]
        tx.change.machines[machine] = replace(record, owner_allows=relation)
        audit.note(tx, actor, Action.LENDING_SET, machine, detail=relation.value)


def set_members(
    core: Core,
    actor: Actor,
    machine: str,
    *,
    users: tuple[str, ...],
    groups: tuple[str, ...],
) -> None:
    """Let these be whom *machine* serves where it serves its members."""
    with core.transaction() as tx:
        record = core.model.machines[machine]
        tx.change.machines[machine] = replace(
            record, members=users, member_groups=groups
        )
        told = members_line(users, groups)
        audit.note(tx, actor, Action.MEMBERS_SET, machine, detail=told or "-")


def set_labels(
    core: Core, actor: Actor, machine: str, labels: Mapping[str, str]
) -> None:
    """Let *machine* have these labels, for which classes may ask."""
    with core.transaction() as tx:
        record = core.model.machines[machine]
        tx.change.machines[machine] = replace(record, labels=dict(labels))
        told = ", ".join(f"{name}={value}" for name, value in labels.items())
        audit.note(tx, actor, Action.LABELS_SET, machine, detail=told or "-")


def members_line(users: Iterable[str], groups: Iterable[str]) -> str:
    """Return members as they are written: users by name, groups with an ``@``."""
    return ", ".join([*users, *(f"@{group}" for group in groups)])


def look_again(core: Core, actor: Actor, machine: str) -> bool:
    """Ask *machine* to look at itself again; False: it is away."""
    asked = machines.look_again(core, machine)
    if asked:
        with core.transaction() as tx:
            audit.note(tx, actor, Action.LOOKED_AGAIN, machine)
    return asked


def declare_lost(core: Core, actor: Actor, machine: str) -> None:
    """An admin's word that nothing runs on *machine* any more.

    Raises:
        UnknownWorkloadError: there is no such machine.
    """
    stopping.declare_lost(core, machine, actor=actor)


def report_second_link(core: Core, machine: str) -> None:
    """Tell that somebody else tried to speak for a machine whose agent lives.

    Every time on the machine's page, and once an hour in the audit log.
    """
    now, known = core.clock.now(), core.model.second_links.get(machine)
    tells = known is None or now - known.told_at >= TELL_AGAIN
    core.model.second_links[machine] = SecondLinks(
        count=known.count + 1 if known is not None else 1,
        last_at=now,
        told_at=now if tells or known is None else known.told_at,
    )
    if tells:
        actor = Actor(name=machine, role=ActorRole.MACHINE)
        with core.transaction() as tx:
            audit.note(tx, actor, Action.SECOND_LINK_REFUSED, machine)
