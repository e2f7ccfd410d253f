"""The controller's records as placement sees them: machines, holders, who waits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256

from fleet_contracts.catalog import Catalog, Deadlines
from fleet_contracts.protocol import COPYING_PROTOCOL
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller import same_devices
from fleet_hub.controller.model import Model, Presence
from fleet_hub.controller.records import Home, Issued, MachineRecord, Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.scheduling.same_device import metal_of, without_others
from fleet_hub.scheduling.snapshot import (
    Allocation,
    MachineState,
    Pin,
    Sharing,
    Snapshot,
    Waiting,
)


def whole_fleet(
    model: Model, catalog: Catalog, settings: Settings, now: datetime
) -> Snapshot:
    """Return the fleet, the line and the rules as of *now*."""
    same_devices.follow(model, model.machines)
    return Snapshot(
        now=now.timestamp(),
        catalog=catalog,
        machines=tuple(
            machine_state(model, catalog, settings, record)
            for _, record in sorted(model.machines.items())
        ),
        waiting=tuple(waiting_of(record) for record in model.waiting()),
        usage=dict(model.usage),
        recovering=is_recovering(model, settings, now),
        names_visible=settings.names_visible,
    )


def is_recovering(model: Model, settings: Settings, now: datetime) -> bool:
    """Whether silent machines may still be about to come back after our start."""
    return now < model.started_at + timedelta(seconds=settings.recovery_seconds)


def machine_state(
    model: Model,
    catalog: Catalog,
    settings: Settings,
    record: MachineRecord,
    known: Mapping[str, Allocation] | None = None,
) -> MachineState:
    """Return what placement may know of a machine; *known* holds are used again."""
    presence = model.presence[record.name]
    others = same_devices.elsewhere(model, record)
    held = [held_by(catalog, holder) for holder in model.holders(record.name)]
    held += [
        _leftover(model.issued[allocation], presence)
        for allocation in sorted(presence.leftovers)
        if allocation in model.issued
    ]
    return MachineState(
        name=record.name,
        owner=record.owner,
        local=record.local,
        online=presence.online,
        offline_since=None if presence.online else presence.since.timestamp(),
        expected_back=not (presence.silence_told or presence.inventory_known),
        inventory_known=presence.inventory_known,
        keeps_back=_keeps_back(presence, settings),
        address_fault=_address_fault(record),
        draining_by=record.draining_by,
        quarantined_until=_set_aside_until(model, record.name),
        facts=without_others(presence.facts, others),
        metal_counts_to=others.get(metal_of(record.boot_id) or ""),
        labels=record.labels,
        sharing=Sharing(
            admin_allows=record.admin_allows,
            owner_allows=record.owner_allows,
            users=frozenset(record.members),
            groups=frozenset(record.member_groups),
        ),
        held=tuple(_same(item, known or {}) for item in held),
        in_use=presence.in_use,
        foreign=presence.used_outside,
        unused_memory_bytes=presence.unused_memory_bytes,
        rested=presence.rested,
        idle=presence.idle,
    )


def _set_aside_until(model: Model, machine: str) -> float | None:
    setbacks = model.setbacks.get(machine)
    until = None if setbacks is None else setbacks.until
    return None if until is None else until.timestamp()


def _keeps_back(presence: Presence, settings: Settings) -> Reason | None:
    """Return why no files can be copied from there; of one that is away nobody knows."""
    if not settings.copy_limit_bytes:
        return Reason.COPY_NOT_OFFERED
    is_old = presence.online and presence.protocol < COPYING_PROTOCOL
    return Reason.AGENT_TOO_OLD if is_old else None


def _address_fault(record: MachineRecord) -> Explanation | None:
    """Return why nobody could open a notebook there, without the address itself."""
    if record.local or record.address is not None:
        return None
    fault = record.address_fault or Explanation(reason=Reason.ADDRESS_UNKNOWN)
    return fault.model_copy(update={"subject": None})


def held_by(catalog: Catalog, record: Workload) -> Allocation:
    """Return what *record* holds.

    Raises:
        ValueError: it holds nothing.
    """
    assignment = record.assignment
    if assignment is None:
        message = f"{record.id} holds nothing"
        raise ValueError(message)
    profile = catalog.profile_named(record.choice.profile)
    return Allocation(
        workload=record.id,
        user_id=record.principal.user_id,
        owner=record.principal.name,
        resources=assignment.resources,
        driver=assignment.runtime.driver,
        class_name=assignment.class_name,
        devices_asked=assignment.devices_asked,
        groups=record.principal.groups,
        title=profile.title if profile else record.choice.profile,
        since=assignment.since.timestamp(),
        ends_by=_ends_by(record, profile.deadlines if profile else Deadlines()),
        # What ends already cannot be asked to.
        handle="" if record.stop is not None else handle_of(assignment.allocation),
        asked=tuple((ask.user_id, ask.at.timestamp()) for ask in assignment.asked),
    )


@lru_cache(maxsize=20_000)
def handle_of(allocation: str) -> str:
    """Return what others may know an allocation by: it names nothing else, nor lasts."""
    return sha256(f"release {allocation}".encode()).hexdigest()[:24]


def waiting_of(record: Workload) -> Waiting:
    """Return *record* as one of the line."""
    return Waiting(
        workload=record.id,
        principal=record.principal,
        profile=record.choice.profile,
        class_name=record.choice.class_name,
        priority=record.moved,
        asked_at=record.asked_at.timestamp(),
        parked=record.parked,
        pin=pin_of(record.home),
        source=record.origin.home.machine
        if record.origin is not None and record.is_copied
        else None,
        rejected_by=dict(record.rejected_by),
        rejections=record.rejections,
        promise=record.promise,
        reservation=record.reservation,
    )


def pin_of(home: Home | None) -> Pin | None:
    """Return where files bind a workload to, if anywhere."""
    if home is None:
        return None
    return Pin(machine=home.machine, driver=home.driver, class_name=home.class_name)


def _ends_by(record: Workload, deadlines: Deadlines) -> float | None:
    """Return the latest end that the agent enforces, its own stop included.

    Until it is ready that counts from the placement, with all that may take time; from
    then on the limit counts from when it was ready, however long that took.
    """
    assignment = record.assignment
    if assignment is None or assignment.limit_seconds is None:
        return None
    if record.ready_at is None:
        return assignment.ends_by
    end = record.ready_at.timestamp() + assignment.limit_seconds
    return end + deadlines.stop_seconds


def _leftover(issued: Issued, presence: Presence) -> Allocation:
    """Something that ended for us and still runs: it holds what it held.

    Its workload may hold something there anew, so it goes by its allocation's name.
    """
    return Allocation(
        workload=issued.allocation,
        user_id=0,
        owner="",
        resources=issued.resources,
        driver=issued.driver,
        since=presence.since.timestamp(),
    )


def _same(allocation: Allocation, known: Mapping[str, Allocation]) -> Allocation:
    """Return the known object where it is equal: it is then known to have stayed."""
    found = known.get(allocation.workload)
    return found if found == allocation else allocation
