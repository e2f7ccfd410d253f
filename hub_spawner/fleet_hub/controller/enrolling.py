"""Machines: enrolment and the records that decide whom they serve."""

from __future__ import annotations

import hmac
import re
from dataclasses import replace
from typing import Final

from fleet_contracts.base import MACHINE_NAME_PATTERN
from fleet_contracts.protocol import Goodbye
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller.core import Core
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.lifecycle import hash_of
from fleet_hub.controller.records import MachineRecord


_NAME: Final = re.compile(MACHINE_NAME_PATTERN)


def enrol(
    core: Core, *, name: str, owner: str, local: bool, provider: str | None = None
) -> str:
    """Return a new token for the machine called *name*; an earlier one is void.

    Without a *provider* the recorded one stays.

    Raises:
        RequestRefusedError: the name cannot be a machine's, or the owner is nobody.
    """
    if not _NAME.fullmatch(name) or not owner:
        raise RequestRefusedError(
            Explanation(
                reason=Reason.INVALID_REQUEST,
                subject="name" if owner else "owner",
                detail="A machine is named like a host, in lower case, and has an owner.",
            )
        )
    token = core.ids.token()
    earlier = core.model.machines.get(name)
    with core.transaction() as tx:
        if earlier is None:
            tx.change.machines[name] = MachineRecord(
                name=name,
                owner=owner,
                local=local,
                provider=provider,
                token_hash=hash_of(token),
                enrolled_at=tx.now,
            )
        else:
            tx.change.machines[name] = replace(
                earlier,
                owner=owner,
                local=local,
                provider=provider or earlier.provider,
                token_hash=hash_of(token),
            )
    if earlier is not None:
        # Whoever speaks with the earlier token speaks for nobody from here on.
        core.links.dismiss(
            name,
            Goodbye(
                code="revoked",
                message=f"{name} was enrolled again: its earlier token is void.",
                retry=False,
            ),
        )
    return token


def machine_of(core: Core, token: str) -> str | None:
    """Return the machine that *token* speaks for; None: nobody's token."""
    presented, found = hash_of(token), None
    for record in core.model.machines.values():
        if hmac.compare_digest(record.token_hash, presented):
            found = record.name
    return found
