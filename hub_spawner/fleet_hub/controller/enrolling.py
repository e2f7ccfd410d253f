"""Machines join: a single-use code bound to its owner, exchanged for a token.

Of codes and tokens only hashes are kept.  A new machine serves its owner alone until
an admin widens its audience.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from fleet_contracts.base import MACHINE_NAME_PATTERN
from fleet_contracts.catalog import Relation
from fleet_contracts.language import mark
from fleet_contracts.protocol import Goodbye
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller import audit
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole
from fleet_hub.controller.core import Core, Transaction
from fleet_hub.controller.errors import CodeRefusedError, RequestRefusedError
from fleet_hub.controller.lifecycle import hash_of
from fleet_hub.controller.records import EnrolmentCode, MachineRecord


_NAME: Final = re.compile(MACHINE_NAME_PATTERN)
_MAY_GIVE: Final = frozenset({ActorRole.ADMIN, ActorRole.TERMINAL})
"""Who may give a machine that nobody owns to somebody."""
WITH_A_CODE: Final = "with a code made by "
"""How the log's detail on a machine that joined begins; who made its code follows."""
LONGEST_OWNER: Final = 255
MOST_CODES: Final = 1000
MOST_CODES_OF_ONE: Final = 20
"""Open codes of one owner; they expire by themselves."""


def make_code(
    core: Core,
    actor: Actor,
    *,
    name: str,
    owner: str,
    local: bool = False,
    provider: str | None = None,
) -> str:
    """Return a code with which *owner*'s machine *name* joins, once and soon.

    *local* is for the Hub's own machine, and for whoever administers it.

    Raises:
        RequestRefusedError: the name cannot be a machine's or is somebody else's, or
            there are too many open codes.
    """
    _check(core, name, owner, local=local)
    known = core.model.machines.get(name)
    if known is not None and not known.owner and actor.role not in _MAY_GIVE:
        raise _refused("name", mark("There is a machine of this name already."))
    if core.model.machines.get(name) is None and any(
        code.machine == name and code.owner != owner
        for code in core.model.codes.values()
    ):
        raise _refused(
            "name", mark("Somebody else is enrolling a machine of this name.")
        )
    with core.transaction() as tx:
        drop_expired(core, tx)
        left = [
            code for key, code in core.model.codes.items() if key not in tx.change.codes
        ]
        own = sum(code.owner == owner for code in left)
        if len(left) >= MOST_CODES or own >= MOST_CODES_OF_ONE:
            raise _refused(
                "code", mark("Too many codes are open; they expire by themselves.")
            )
        return _new_code(
            core, tx, actor, name=name, owner=owner, local=local, provider=provider
        )


def _new_code(
    core: Core,
    tx: Transaction,
    actor: Actor,
    *,
    name: str,
    owner: str,
    local: bool = False,
    provider: str | None = None,
) -> str:
    # Never begins with a dash, which a command line would take for an option.
    code = f"enrol-{core.ids.token()}"
    tx.change.codes[hash_of(code)] = EnrolmentCode(
        code_hash=hash_of(code),
        machine=name,
        owner=owner,
        local=local,
        provider=provider,
        made_by=actor.name,
        made_at=tx.now,
        expires_at=tx.now + timedelta(seconds=core.settings.code_seconds),
    )
    audit.note(tx, actor, Action.CODE_MADE, name, detail=f"for {owner}")
    return code


def exchange(core: Core, code: str) -> tuple[MachineRecord, str]:
    """Return the machine that *code* was made for, and its new token.

    Raises:
        CodeRefusedError: it was used, has expired, or was never given.
    """
    found = core.model.codes.get(hash_of(code))
    if found is None or found.expires_at <= core.clock.now():
        raise CodeRefusedError
    _check(core, found.machine, found.owner, local=found.local)
    actor = Actor(name=found.owner, role=ActorRole.MACHINE)
    token = core.ids.token()
    with core.transaction() as tx:
        tx.change.codes[found.code_hash] = None
        _record(
            core,
            tx,
            token,
            name=found.machine,
            owner=found.owner,
            local=found.local,
            provider=found.provider,
        )
        audit.note(
            tx,
            actor,
            Action.ENROLLED,
            found.machine,
            detail=f"{WITH_A_CODE}{found.made_by}",
        )
    _send_away(core, found.machine)
    return core.model.machines[found.machine], token


def enrol(
    core: Core,
    *,
    name: str,
    owner: str,
    local: bool,
    provider: str | None = None,
    actor: Actor | None = None,
) -> str:
    """Return a new token for the machine called *name*; an earlier one is void.

    For the Hub's own installation, which may give a machine to another owner.  Without
    a *provider* the recorded one stays.

    Raises:
        RequestRefusedError: the name cannot be a machine's, or the owner is nobody.
    """
    _check_names(name, owner)
    token = core.ids.token()
    with core.transaction() as tx:
        _record(core, tx, token, name=name, owner=owner, local=local, provider=provider)
        by = actor or Actor(name="jupyterhub", role=ActorRole.TERMINAL)
        audit.note(tx, by, Action.ENROLLED, name, detail=f"for {owner}")
    _send_away(core, name)
    return token


def _record(
    core: Core,
    tx: Transaction,
    token: str,
    *,
    name: str,
    owner: str,
    local: bool,
    provider: str | None,
) -> None:
    earlier = core.model.machines.get(name)
    if earlier is None:
        record = MachineRecord(
            name=name,
            owner=owner,
            local=local,
            provider=provider,
            token_hash=hash_of(token),
            enrolled_at=tx.now,
        )
    else:
        record = replace(
            earlier,
            owner=owner,
            **(_ANEW if earlier.owner != owner else {}),
            local=local,
            provider=provider or earlier.provider,
            token_hash=hash_of(token),
            address=None,
            address_fault=None,
        )
    tx.change.machines[name] = record


_ANEW: Final[dict[str, Any]] = {
    "owner_id": None,
    "admin_allows": Relation.OWNER,
    "owner_allows": Relation.OWNER,
    "members": (),
    "member_groups": (),
}
"""Of a machine with another owner: it serves that one alone, as a new one does."""


def rotate(core: Core, actor: Actor, machine: str) -> str:
    """Void the token of *machine*, end its link, and return a code for a new one.

    What runs there runs on.
    """
    record = core.model.machines[machine]
    with core.transaction() as tx:
        _void(core, tx, record)
        audit.note(tx, actor, Action.ROTATED, machine)
        code = _new_code(
            core, tx, actor, name=machine, owner=record.owner, local=record.local
        )
    _send_away(core, machine)
    return code


def revoke(core: Core, actor: Actor, machine: str) -> None:
    """Void the token of *machine* and end its link; what runs there runs on."""
    with core.transaction() as tx:
        _void(core, tx, core.model.machines[machine])
        audit.note(tx, actor, Action.REVOKED, machine)
    _send_away(core, machine)


def _void(core: Core, tx: Transaction, record: MachineRecord) -> None:
    tx.change.machines[record.name] = replace(record, token_hash="")
    for code in core.model.codes.values():
        if code.machine == record.name:
            tx.change.codes[code.code_hash] = None


def drop_expired(core: Core, tx: Transaction) -> None:
    """Forget the codes whose time is over."""
    for code in core.model.codes.values():
        if code.expires_at <= tx.now:
            tx.change.codes[code.code_hash] = None


def earliest_expiry(core: Core) -> datetime | None:
    """Return when the next code expires; None: none is open."""
    return min((code.expires_at for code in core.model.codes.values()), default=None)


def machine_of(core: Core, token: str) -> str | None:
    """Return the machine that *token* speaks for; None: nobody's token."""
    # A hash tells a guesser nothing by how far it agrees, so that a look-up will do.
    return core.model.machine_of_token(hash_of(token))


def _send_away(core: Core, machine: str) -> None:
    """End the link of whoever speaks with an earlier token."""
    core.links.dismiss(
        machine,
        Goodbye(
            code="revoked",
            message=f"The token of {machine} is void: enrol the machine again.",
            retry=False,
        ),
    )


def _check(core: Core, name: str, owner: str, *, local: bool) -> None:
    _check_names(name, owner)
    known = core.model.machines.get(name)
    if known is None:
        return
    if known.owner not in {owner, ""} or known.local != local:
        raise _refused("name", mark("There is a machine of this name already."))


def _check_names(name: str, owner: str) -> None:
    if not _NAME.fullmatch(name) or not 0 < len(owner) <= LONGEST_OWNER:
        raise _refused(
            "name" if owner else "owner",
            mark("A machine is named like a host, in lower case, and has an owner."),
        )


def _refused(subject: str, detail: str) -> RequestRefusedError:
    return RequestRefusedError(
        Explanation(reason=Reason.INVALID_REQUEST, subject=subject, detail=detail)
    )
