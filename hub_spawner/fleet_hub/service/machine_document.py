"""Machines as JSON: for admins, and for the command line on the Hub's machine."""

from __future__ import annotations

from typing import Any

from fleet_hub.controller.core import Core
from fleet_hub.controller.machines import picture_of
from fleet_hub.controller.records import MachineRecord, Workload


def fleet_document(core: Core) -> dict[str, Any]:
    """Return all machines, by name."""
    return {
        "machines": [
            machine_document(core, record)
            for _, record in sorted(core.model.machines.items())
        ]
    }


def machine_document(core: Core, record: MachineRecord) -> dict[str, Any]:
    """Return what an admin reads of a machine; its capabilities are its own word."""
    presence = core.model.presence[record.name]
    until = core.model.set_aside_until(record.name, core.clock.now())
    return {
        "name": record.name,
        "owner": record.owner,
        "provider": record.supplier,
        "local": record.local,
        "online": presence.online,
        "since": presence.since.isoformat(),
        "enrolled_at": record.enrolled_at.isoformat(),
        "inventory_known": presence.inventory_known,
        "draining_by": record.draining_by,
        "set_aside_until": None if until is None else until.isoformat(),
        "admin_allows": record.admin_allows.value,
        "owner_allows": record.owner_allows.value,
        "members": list(record.members),
        "member_groups": list(record.member_groups),
        "is_revoked": not record.token_hash,
        "address": record.address.address if record.address else None,
        "address_fault": record.address_fault.model_dump(mode="json", exclude_none=True)
        if record.address_fault
        else None,
        "labels": dict(record.labels),
        "agent_version": record.agent_version,
        "holds": [_held(workload) for workload in core.model.holders(record.name)],
        "foreign_allocations": [
            {"allocation": allocation, "epoch": epoch}
            for allocation, epoch in sorted(presence.foreign)
        ],
        "capabilities": picture_of(core, record).model_dump(mode="json", by_alias=True),
    }


def _held(workload: Workload) -> dict[str, Any]:
    assignment = workload.assignment
    return {
        "workload": workload.id,
        "user": workload.principal.name,
        "server": workload.server_name,
        "state": workload.state.value,
        "class": assignment.class_name if assignment else None,
        "resources": assignment.resources.model_dump(mode="json")
        if assignment
        else None,
    }
