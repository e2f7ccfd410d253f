"""Trying a machine's address, once: at enrolment, and when it tells another one.

The machine listens for a moment, the controller connects with a nonce.  A machine that
the Hub cannot reach so learns why before anybody waits for a notebook there.
"""

from __future__ import annotations

import hmac
from dataclasses import replace
from datetime import timedelta
from typing import Final

import structlog

from fleet_contracts.enrolment import answer_to
from fleet_contracts.language import mark
from fleet_contracts.protocol import AddressOffer
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller import audit
from fleet_hub.controller.addresses import canonical, fault_of
from fleet_hub.controller.audit_entry import Action, Actor, ActorRole
from fleet_hub.controller.core import Core
from fleet_hub.controller.records import ApprovedAddress, MachineRecord


log = structlog.get_logger()

REST: Final = timedelta(seconds=5)
"""Between two tries for one machine: nobody scans a network through the controller."""


async def try_offer(
    core: Core, machine: str, offer: AddressOffer
) -> Explanation | None:
    """Approve the offered address of *machine*, or return why not."""
    record, now = core.model.machines[machine], core.clock.now()
    if record.local:
        return None
    tried_at = core.model.tried_at.get(machine)
    if tried_at is not None and now - tried_at < REST:
        return Explanation(
            reason=Reason.ADDRESS_UNKNOWN, detail=mark("one was tried a moment ago")
        )
    core.model.tried_at[machine] = now
    found = await _tried(core, record, offer)
    _keep(core, machine, record.token_hash, found)
    return found if isinstance(found, Explanation) else None


async def _tried(
    core: Core, record: MachineRecord, offer: AddressOffer
) -> ApprovedAddress | Explanation:
    addresses = [
        found
        for host in await core.network.resolve(offer.address)
        if (found := canonical(host)) is not None
    ]
    if not addresses:
        return Explanation(
            reason=Reason.ADDRESS_REFUSED,
            subject=offer.address,
            detail=mark("the Hub finds no address of this name"),
        )
    for address in addresses:
        # All of them: a name must not hide a forbidden address behind a good one.
        fault = fault_of(core, record, address)
        if fault is not None:
            return fault
    nonce, expected = core.ids.token(), ""
    answer = await core.network.try_address(addresses[0], offer.port, nonce)
    expected = answer_to(nonce, offer.key)
    if answer is None or not hmac.compare_digest(answer.encode(), expected.encode()):
        return Explanation(reason=Reason.ADDRESS_UNREACHABLE, subject=addresses[0])
    return ApprovedAddress(
        claimed=offer.address, address=addresses[0], approved_at=core.clock.now()
    )


def _keep(
    core: Core, machine: str, token_hash: str, found: ApprovedAddress | Explanation
) -> None:
    """Make the outcome durable, unless the machine is another one by now."""
    record = core.model.machines[machine]
    if record.token_hash != token_hash:
        return
    if isinstance(found, ApprovedAddress):
        # Somebody else may have got it while we tried.
        found = fault_of(core, record, found.address) or found
    actor = Actor(name=machine, role=ActorRole.MACHINE)
    with core.transaction() as tx:
        if isinstance(found, Explanation):
            tx.change.machines[machine] = replace(
                record, address=None, address_fault=found
            )
            if found != record.address_fault:
                audit.note(
                    tx,
                    actor,
                    Action.ADDRESS_REFUSED,
                    machine,
                    detail=f"{found.subject or ''} {found.reason.value}".strip(),
                )
        else:
            tx.change.machines[machine] = replace(
                record, address=found, address_fault=None
            )
            audit.note(
                tx, actor, Action.ADDRESS_APPROVED, machine, detail=found.address
            )
    log.info(
        "address tried",
        machine=machine,
        approved=isinstance(found, ApprovedAddress),
    )
