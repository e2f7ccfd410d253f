"""The snapshot that placement decides on, built from the model."""

from __future__ import annotations

from datetime import datetime, timedelta

from fleet_hub.controller.core import Core
from fleet_hub.controller.model import Presence
from fleet_hub.controller.records import Home, Issued, MachineRecord, Workload
from fleet_hub.scheduling.snapshot import (
    Allocation,
    MachineState,
    Pin,
    Sharing,
    Snapshot,
    Waiting,
)


def snapshot(core: Core) -> Snapshot:
    """Return the fleet, the line and the rules as of now."""
    model, now = core.model, core.clock.now()
    held: dict[str, list[Allocation]] = {name: [] for name in model.machines}
    for record in model.workloads.values():
        if record.holds and record.assignment is not None:
            held.setdefault(record.assignment.machine, []).append(_held(core, record))
    recovery = timedelta(seconds=core.settings.recovery_seconds)
    return Snapshot(
        now=now.timestamp(),
        catalog=core.catalogs.current(),
        machines=tuple(
            _machine(core, record, held[name])
            for name, record in sorted(model.machines.items())
        ),
        waiting=tuple(_waiting(record) for record in model.waiting()),
        recovering=now < model.started_at + recovery,
        names_visible=core.settings.names_visible,
    )


def _machine(core: Core, record: MachineRecord, held: list[Allocation]) -> MachineState:
    presence = core.model.presence[record.name]
    held += [
        _leftover(core.model.issued[allocation], presence)
        for allocation in sorted(presence.leftovers)
        if allocation in core.model.issued
    ]
    return MachineState(
        name=record.name,
        owner=record.owner,
        local=record.local,
        online=presence.online,
        offline_since=None if presence.online else presence.since.timestamp(),
        inventory_known=presence.inventory_known,
        draining_by=record.draining_by,
        facts=presence.facts,
        labels=record.labels,
        sharing=Sharing(
            admin_allows=record.admin_allows, owner_allows=record.owner_allows
        ),
        held=tuple(held),
    )


def _held(core: Core, record: Workload) -> Allocation:
    assignment = record.assignment
    if assignment is None:
        message = f"{record.id} holds nothing"
        raise ValueError(message)
    profile = core.catalogs.current().profile_named(record.choice.profile)
    return Allocation(
        workload=record.id,
        user_id=record.principal.user_id,
        owner=record.principal.name,
        resources=assignment.resources,
        driver=assignment.runtime.driver,
        class_name=assignment.class_name,
        groups=record.principal.groups,
        title=profile.title if profile else record.choice.profile,
        since=assignment.since.timestamp(),
        ends_by=_ends_by(record.ready_at, assignment.limit_seconds),
    )


def _ends_by(ready_at: datetime | None, limit_seconds: float | None) -> float | None:
    if ready_at is None or limit_seconds is None:
        return None
    return ready_at.timestamp() + limit_seconds


def _leftover(issued: Issued, presence: Presence) -> Allocation:
    """Something that ended for us and still runs: it holds what it held."""
    return Allocation(
        workload=issued.workload,
        user_id=0,
        owner="",
        resources=issued.resources,
        driver=issued.driver,
        since=presence.since.timestamp(),
    )


def _waiting(record: Workload) -> Waiting:
    return Waiting(
        workload=record.id,
        principal=record.principal,
        profile=record.choice.profile,
        class_name=record.choice.class_name,
        asked_at=record.asked_at.timestamp(),
        parked=record.parked,
        pin=pin_of(record.home),
        rejected_by=dict(record.rejected_by),
        rejections=record.rejections,
        promise=record.promise,
    )


def pin_of(home: Home | None) -> Pin | None:
    """Return where files bind a workload to, if anywhere."""
    if home is None:
        return None
    return Pin(machine=home.machine, driver=home.driver, class_name=home.class_name)
