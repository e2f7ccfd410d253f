"""Beginning with a copy of files that another machine keeps: who may, and who does.

The controller only says who sends what to whom, and hands over what it does not look
at.  A copy belongs to one allocation, and is over with it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fleet_contracts.allocations import State
from fleet_contracts.protocol import COPYING_PROTOCOL, SendFiles
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import CopyOrder
from fleet_hub.controller.core import Core, Transaction
from fleet_hub.controller.records import Home, Workload
from fleet_hub.scheduling.snapshot import Pin
from fleet_hub.scheduling.ways_out import KEEP_FILES, Copying, copy_obstacle


_FETCHING: Final = frozenset({State.PLACED, State.PREPARING, State.UNKNOWN})
"""Where an allocation is before its server is started; a report may be on its way."""


def is_too_old(core: Core, machine: str) -> bool:
    """Whether the agent that is linked cannot copy; of one that is away nobody knows."""
    presence = core.model.presence.get(machine)
    return (
        presence is not None
        and presence.online
        and presence.protocol < COPYING_PROTOCOL
    )


def keeps_no_files(core: Core, machine: str) -> bool:
    """Whether all that *machine* offers are notebooks whose files end with them."""
    presence = core.model.presence.get(machine)
    offered = presence.facts.drivers if presence is not None else {}
    may_be = {name for name, usable in offered.items() if usable is not False}
    return bool(may_be) and not may_be & KEEP_FILES


def unfit(core: Core) -> dict[str, Reason]:
    """Return the machines to which no files can be copied, with why."""
    found = {name: why_unfit(core, name) for name in core.model.machines}
    return {name: why for name, why in found.items() if why is not None}


def why_unfit(core: Core, machine: str) -> Reason | None:
    """Return why no files can be copied to *machine*; None: they can."""
    if is_too_old(core, machine):
        return Reason.AGENT_TOO_OLD
    return Reason.KEEPS_NO_FILES if keeps_no_files(core, machine) else None


def known(core: Core) -> Copying:
    """Return what is known of copying, for whoever asks what may be done instead."""
    return Copying(offered=bool(core.settings.copy_limit_bytes), unfit=unfit(core))


def obstacle(core: Core, home: Home) -> Explanation | None:
    """Return why the files at *home* cannot be copied, wherever to; None: they can."""
    presence = core.model.presence.get(home.machine)
    return copy_obstacle(
        Pin(machine=home.machine, driver=home.driver),
        offered=bool(core.settings.copy_limit_bytes),
        too_old=is_too_old(core, home.machine),
        online=presence is not None and presence.online,
    )


def copy_order(record: Workload, *, limit_bytes: int) -> CopyOrder | None:
    """Return what the agent of a launch is told about files to fetch."""
    return CopyOrder(limit_bytes=limit_bytes) if record.is_copied else None


def fetching(core: Core, machine: str, allocation: str, epoch: int) -> Workload | None:
    """Return the workload whose files *machine* may fetch now for this allocation."""
    record = core.model.by_allocation(allocation, epoch)
    assignment = record.assignment if record is not None else None
    if record is None or assignment is None or assignment.machine != machine:
        return None
    return record if _may_go_on(record) else None


def sending(core: Core, machine: str, allocation: str, epoch: int) -> Workload | None:
    """Return the workload whose files *machine* may send now to this allocation."""
    record = core.model.by_allocation(allocation, epoch)
    if record is None or record.origin is None or not _may_go_on(record):
        return None
    return record if record.origin.home.machine == machine else None


def order_to_send(core: Core, record: Workload) -> SendFiles | None:
    """Return what the machine with the files is told; None: it cannot be."""
    origin, assignment = record.origin, record.assignment
    if origin is None or assignment is None or obstacle(core, origin.home):
        return None
    return SendFiles(
        allocation=assignment.allocation,
        epoch=assignment.epoch,
        driver=origin.home.driver,
        notebook=origin.notebook,
        owner=record.principal.name,
        owner_id=record.principal.user_id,
        limit_bytes=core.settings.copy_limit_bytes,
    )


def naming_source(
    record: Workload, explanation: Explanation | None
) -> Explanation | None:
    """Return *explanation* with the machine whose files are waited for.

    The machine that fetches them does not know it.
    """
    if explanation is None or explanation.reason is not Reason.COPY_SOURCE_AWAY:
        return explanation
    source = record.origin.home.machine if record.origin is not None else None
    return explanation.model_copy(update={"subject": source})


def go_back(record: Workload) -> Workload:
    """Return *record* where its files have been all the time: it never left them."""
    origin = record.origin
    if origin is None:
        return record
    return replace(record, home=origin.home, notebook=origin.notebook, origin=None)


def avoid_unfit(core: Core, tx: Transaction, machine: str) -> None:
    """Lead nobody to *machine* who waits to begin with a copy, if it takes none."""
    why = why_unfit(core, machine)
    if why is None:
        return
    for record in core.model.waiting():
        if record.is_copied:
            record = tx.workload(record.id)  # noqa: PLW2901 - as the change has it
            known = dict(record.rejected_by) | {machine: why}
            tx.put(replace(record, rejected_by=known))


def _may_go_on(record: Workload) -> bool:
    return record.is_copied and record.state in _FETCHING and record.stop is None
