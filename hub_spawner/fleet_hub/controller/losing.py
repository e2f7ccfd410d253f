"""Whoever runs on a GPU is told when it is gone, and when it is there again.

Nothing is ended and nothing given back because of it: what runs may still be saved,
and what it holds is its own until the machine says that nothing of it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog
from pydantic import ValidationError

from fleet_contracts.capabilities import WorkerCapabilities
from fleet_contracts.device_use import is_there
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller.core import Core, Transaction
from fleet_hub.controller.records import Assignment, Workload


log = structlog.get_logger()


def note_devices(
    core: Core, tx: Transaction, machine: str, told: Mapping[str, Any]
) -> None:
    """Write down whose devices *machine* has lost or found again, as it *told*."""
    holders = [
        (record, record.assignment)
        for record in core.model.holders(machine)
        if record.assignment is not None
        and record.assignment.launched
        and record.assignment.resources.devices
    ]
    if not holders:
        return
    try:
        picture = WorkerCapabilities.model_validate(told)
    except ValidationError:
        # Nobody understands it, so it says nothing of any device.
        return
    for record, assignment in holders:
        _note(tx, tx.workload(record.id), assignment, picture)


def _note(
    tx: Transaction,
    record: Workload,
    assignment: Assignment,
    picture: WorkerCapabilities,
) -> None:
    devices, earlier = assignment.resources.devices, set(assignment.lost_devices)
    standing = {uuid: is_there(picture, uuid) for uuid in devices}
    # Of what nobody can tell, what was known stays known.
    lost = {uuid for uuid in earlier if standing.get(uuid) is not True}
    lost |= {uuid for uuid, stands in standing.items() if stands is False}
    if lost == earlier:
        return
    reason = Reason.DEVICE_LOST if lost - earlier else Reason.DEVICE_RETURNED
    assignment = replace(assignment, lost_devices=tuple(sorted(lost)))
    record = tx.put(replace(record, assignment=assignment))
    tx.record(
        record,
        TimelineKind.NOTE,
        actor="agent",
        explanation=Explanation(
            reason=reason,
            machine=assignment.machine,
            requested=len(devices),
            capacity=len(devices),
            free=len(devices) - len(lost),
            unit="devices",
        ),
    )
    log.warning("devices of a workload", machine=assignment.machine, lost=len(lost))
