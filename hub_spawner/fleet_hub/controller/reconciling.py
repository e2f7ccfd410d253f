"""Agents' links: what a machine says of itself, compared with what it was told.

A link speaks for its own machine only, and only for allocations that were issued to
it.  Everything else is foreign: shown, and never adopted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import structlog
from pydantic import ValidationError

from fleet_contracts.allocations import Event, State
from fleet_contracts.capabilities import WorkerCapabilities
from fleet_contracts.placement_facts import PlacementFacts, placement_facts
from fleet_contracts.protocol import (
    OLDEST_PROTOCOL,
    PROTOCOL,
    Acknowledge,
    AgentEvent,
    Forget,
    Hello,
    Inventory,
    InventoryItem,
    Report,
    Stop,
    Welcome,
)
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import copying, lifecycle, losing, reporting
from fleet_hub.controller.agents_word import lifted_generation, plausible
from fleet_hub.controller.core import Core, Transaction
from fleet_hub.controller.errors import LinkRefusedError
from fleet_hub.controller.records import Issued, Workload


log = structlog.get_logger()

MOST_ALLOCATIONS: Final = 10_000
"""Of one machine's inventory, and of what is remembered of its foreign ones."""
_AHEAD: Final = {
    AgentEvent.ACCEPTED: State.PREPARING,
    AgentEvent.PREPARED: State.STARTING,
    AgentEvent.SERVING: State.READY,
}


def check_protocol(hello: Hello) -> None:
    """Refuse an agent whose protocol is not spoken here.

    Raises:
        LinkRefusedError: it may come back once both sides are of one version.
    """
    if not OLDEST_PROTOCOL <= hello.protocol <= PROTOCOL:
        raise LinkRefusedError(
            "protocol_unsupported",
            f"This controller speaks protocols {OLDEST_PROTOCOL} to {PROTOCOL}; the "
            f"agent speaks {hello.protocol}. Install the same version on both.",
            retry=True,
        )


def greet(core: Core, machine: str, hello: Hello) -> Welcome:
    """Begin a machine's presence anew; nothing is placed there before its inventory."""
    record = core.model.machines[machine]
    generation = lifted_generation(core, machine, hello.highest_epoch)
    presence = core.model.begin_presence(machine, core.clock.now())
    presence.facts = facts_of(machine, hello.capabilities)
    presence.protocol = hello.protocol
    presence.rebooted = record.boot_id not in {None, hello.boot_id}
    with core.transaction() as tx:
        tx.change.machines[machine] = replace(
            record,
            ledger_id=hello.ledger_id,
            boot_id=hello.boot_id,
            agent_version=hello.agent_version,
            capabilities=hello.capabilities,
        )
        tx.change.generation = generation
        losing.note_devices(core, tx, machine, hello.capabilities)
        _forgive(core, tx, machine)
    if generation is not None:
        core.model.lifted_at[machine] = core.clock.now()
    return Welcome(
        protocol=hello.protocol,
        machine=machine,
        heartbeat_seconds=core.settings.heartbeat_seconds,
        hub_api_url=core.settings.hub_api_url,
        wants_address=not record.local,
        approved_address=record.address.claimed if record.address else None,
    )


def facts_of(machine: str, capabilities: Mapping[str, Any]) -> PlacementFacts:
    """Return what placement may rely on; a picture not understood is no picture."""
    if not capabilities:
        return PlacementFacts()
    try:
        return placement_facts(WorkerCapabilities.model_validate(capabilities))
    except ValidationError as error:
        where = [".".join(map(str, fault["loc"])) for fault in error.errors()[:5]]
        log.warning("capabilities not understood", machine=machine, fields=where)
        return PlacementFacts()


def update_capabilities(
    core: Core, machine: str, capabilities: Mapping[str, Any]
) -> None:
    """Take in a machine's new picture of itself."""
    core.model.presence[machine].facts = facts_of(machine, capabilities)
    core.model.stirred.add(machine)
    with core.transaction() as tx:
        record = core.model.machines[machine]
        tx.change.machines[machine] = replace(record, capabilities=dict(capabilities))
        losing.note_devices(core, tx, machine, capabilities)
        _forgive(core, tx, machine)


def _forgive(core: Core, tx: Transaction, machine: str) -> None:
    """A machine that has changed may be tried again for everybody."""
    for record in core.model.waiting():
        if machine in record.rejected_by:
            others = {
                name: reason
                for name, reason in record.rejected_by.items()
                if name != machine
            }
            tx.put(replace(record, rejected_by=others))
    copying.avoid_unfit(core, tx, machine)


def lose(core: Core, machine: str) -> None:
    """The link is gone.  Nothing is freed; nothing new is placed there."""
    presence = core.model.presence[machine]
    presence.online = False
    presence.inventory_known = False
    presence.since = core.clock.now()
    core.model.stirred.add(machine)
    core.want_cycle()


def take_inventory(core: Core, machine: str, page: Inventory) -> None:
    """Compare what really runs with what the truth says, once the last page is in."""
    presence = core.model.presence[machine]
    presence.pages |= {item.allocation: item for item in page.items}
    if len(presence.pages) > MOST_ALLOCATIONS:
        raise LinkRefusedError(
            "inventory_too_long",
            f"An inventory holds at most {MOST_ALLOCATIONS} allocations.",
            retry=True,
        )
    if not page.last:
        return
    items, presence.pages = presence.pages, {}
    presence.inventory_known = True
    presence.silence_told = False
    core.model.stirred.add(machine)
    with core.transaction() as tx:
        for record in list(core.model.holders(machine)):
            _compare(core, tx, record, items)
        for item in items.values():
            _judge_other(core, tx, machine, item)
        for issued in list(core.model.issued.values()):
            gone = not issued.open and issued.allocation not in items
            if issued.machine == machine and gone:
                tx.change.issued.setdefault(issued.allocation, None)
                presence.leftovers.discard(issued.allocation)
    core.want_cycle()


def _compare(
    core: Core,
    tx: Transaction,
    record: Workload,
    items: Mapping[str, InventoryItem],
) -> None:
    assignment = record.assignment
    if assignment is None or not assignment.launched:
        return
    item = items.get(assignment.allocation)
    if item is None or item.epoch != assignment.epoch:
        _missing(core, tx, record)
        return
    told = False
    if item.seq > assignment.report_seq and _AHEAD.get(item.event) is not record.state:
        # Its reports are on their way and tell it better; see ``catch_up``.
        core.model.presence[assignment.machine].behind[item.allocation] = item
    else:
        # One that returns from the unknown is told its stop by that.
        told = record.state is State.UNKNOWN
        record = _heard(tx, record, item.seq)
        record = reporting.take_in(
            core,
            tx,
            record,
            item.event,
            url=item.url,
            explanation=item.explanation,
        )
    if record.stop is not None:
        if not told:
            lifecycle.tell_stop(tx, record)
    elif record.state in {State.PREPARING, State.STARTING}:
        # The agent may have been killed: it goes on from a repeated launch.
        lifecycle.launch(core, tx, record)


def _missing(core: Core, tx: Transaction, record: Workload) -> None:
    """The machine's ledger does not have it: never heard, or lost."""
    assignment = record.assignment
    if assignment is None:
        return
    presence = core.model.presence[assignment.machine]
    if record.stop is not None:
        lifecycle.tell_stop(tx, record)
    elif not assignment.heard:
        if record.state is State.UNKNOWN:
            record = tx.advance(record, Event.PLACED)
            record = tx.record(record, TimelineKind.RETURNED)
        lifecycle.launch(core, tx, record)
    elif presence.rebooted:
        explanation = Explanation(
            reason=Reason.MACHINE_REBOOTED, machine=assignment.machine
        )
        lifecycle.finish(core, tx, record, Event.FAILED, explanation=explanation)
    elif record.state is not State.UNKNOWN:
        # It may still run there, unsupervised: held until somebody stops it.  A new
        # ledger counts its reports anew.
        lost = Explanation(reason=Reason.LEDGER_LOST, machine=assignment.machine)
        record = tx.advance(
            record,
            Event.MACHINE_SILENT,
            explanation=lost,
            assignment=replace(assignment, report_seq=0),
        )
        tx.record(record, TimelineKind.SILENT, explanation=lost)


def _judge_other(
    core: Core, tx: Transaction, machine: str, item: InventoryItem
) -> None:
    """Deal with a ledger row that no workload of ours holds now."""
    issued = core.model.issued.get(item.allocation)
    presence = core.model.presence[machine]
    if not _is_issued(issued, machine, item.epoch):
        _note_foreign(core, machine, item.allocation, item.epoch)
        return
    if issued is None or issued.open:
        return
    if item.event in reporting.OVER:
        presence.leftovers.discard(item.allocation)
        tx.change.issued[item.allocation] = None
        tx.tell(machine, Forget(allocation=item.allocation, epoch=item.epoch))
    else:
        presence.leftovers.add(item.allocation)
        tx.tell(machine, Stop(allocation=item.allocation, epoch=item.epoch))


def _is_issued(issued: Issued | None, machine: str, epoch: int) -> bool:
    return issued is not None and (issued.machine, issued.epoch) == (machine, epoch)


def _note_foreign(core: Core, machine: str, allocation: str, epoch: int) -> None:
    presence = core.model.presence[machine]
    known = presence.foreign
    if (allocation, epoch) not in known and len(known) < MOST_ALLOCATIONS:
        presence.foreign.add((allocation, epoch))
        log.warning(
            "foreign allocation", machine=machine, allocation=allocation, epoch=epoch
        )


def take_report(core: Core, machine: str, report: Report) -> None:
    """Take in one report and acknowledge it once it is durable."""
    issued = core.model.issued.get(report.allocation)
    if not _is_issued(issued, machine, report.epoch):
        _note_foreign(core, machine, report.allocation, report.epoch)
        return
    record = core.model.by_allocation(report.allocation, report.epoch)
    with core.transaction() as tx:
        if record is None:
            _late(core, tx, machine, report)
        elif record.assignment and report.seq > record.assignment.report_seq:
            _apply(core, tx, record, report)
        tx.tell(
            machine,
            Acknowledge(
                allocation=report.allocation, epoch=report.epoch, seq=report.seq
            ),
        )


def _apply(core: Core, tx: Transaction, record: Workload, report: Report) -> None:
    if report.event is AgentEvent.PROGRESS:
        if report.progress is not None:
            at = plausible(report.at, tx.now) or tx.now
            reporting.progress(core, record, report.progress, at)
        return
    record = _heard(tx, record, report.seq)
    reporting.take_in(
        core,
        tx,
        record,
        report.event,
        url=report.url,
        explanation=report.explanation,
        at=report.at,
    )


def _heard(tx: Transaction, record: Workload, seq: int) -> Workload:
    assignment = record.assignment
    if assignment is None:
        return record
    seq = max(seq, assignment.report_seq)
    return tx.put(
        replace(record, assignment=replace(assignment, heard=True, report_seq=seq))
    )


def _late(core: Core, tx: Transaction, machine: str, report: Report) -> None:
    """A report on something that ended for us already."""
    presence = core.model.presence[machine]
    if report.event in reporting.OVER:
        presence.leftovers.discard(report.allocation)
        core.model.stirred.add(machine)
        tx.change.issued[report.allocation] = None
        tx.tell(machine, Forget(allocation=report.allocation, epoch=report.epoch))


def catch_up(core: Core, machine: str) -> None:
    """Take the inventory's word where the reports behind it never came.

    Called with the first heartbeat: an agent sends what it owes before that.
    """
    presence = core.model.presence[machine]
    behind, presence.behind = presence.behind, {}
    for item in behind.values():
        record = core.model.by_allocation(item.allocation, item.epoch)
        if record is None or record.assignment is None:
            continue
        if record.assignment.report_seq < item.seq:
            with core.transaction() as tx:
                reporting.take_in(
                    core,
                    tx,
                    _heard(tx, record, item.seq),
                    item.event,
                    url=item.url,
                    explanation=item.explanation,
                )
