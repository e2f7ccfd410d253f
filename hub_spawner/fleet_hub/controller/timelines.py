"""The timeline document of one workload, as of one moment."""

from __future__ import annotations

import hashlib
from datetime import timedelta

from fleet_contracts.allocations import PHASE
from fleet_contracts.timeline import Limits, Timeline, TimelineKind
from fleet_hub.admission import ServerStatus
from fleet_hub.controller.core import Core
from fleet_hub.controller.records import Workload
from fleet_hub.controller.words import headline_of, position_of


def timeline_of(core: Core, record: Workload) -> Timeline:
    """Return the document of the current generation: every page shows this one."""
    profile = core.catalogs.current().profile_named(record.choice.profile)
    assignment = record.assignment
    events = tuple(
        event
        for event in core.store.events(record.id)
        if event.generation == record.generation
    )
    return Timeline.model_validate(
        {
            "as_of": core.clock.now(),
            "workload": record.id,
            "generation": record.generation,
            "user": record.principal.name,
            "server": record.server_name,
            "profile": record.choice.profile,
            "profile_title": profile.title if profile else None,
            "class": record.choice.class_name,
            "machine": assignment.machine if assignment else None,
            "state": record.state,
            "phase": PHASE[record.state],
            "position": position_of(core, record),
            "parked": record.parked,
            "headline": headline_of(core, record),
            "explanation": record.explanation,
            "limits": limits_of(record),
            "events": events,
            "truncated": not events or events[0].kind is not TimelineKind.ASKED,
        }
    )


def etag_of(timeline: Timeline) -> str:
    """Return a tag that changes when the document does, the moment aside."""
    text = timeline.model_dump_json(by_alias=True, exclude={"as_of"})
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def limits_of(record: Workload) -> Limits:
    """Return the limits that are in force while the workload holds something."""
    assignment = record.assignment
    if assignment is None:
        return Limits()
    held = assignment.resources
    ends_at = None
    if record.ready_at is not None and assignment.limit_seconds is not None:
        ends_at = record.ready_at + timedelta(seconds=assignment.limit_seconds)
    return Limits(
        cpu_milli=held.cpu_milli,
        memory_bytes=held.memory_bytes,
        devices=len(held.devices),
        metal_reserved=held.metal,
        ends_at=ends_at,
    )


def status_of(core: Core, record: Workload, *, view_token: str) -> ServerStatus:
    """Return what the Hub needs to know of one server."""
    return ServerStatus(
        key=record.key,
        workload=record.id,
        generation=record.generation,
        state=record.state,
        parked=record.parked,
        attended=core.is_attended(record.id),
        holds=record.holds,
        unclaimed=record.assignment is not None and not record.assignment.launched,
        url=record.url,
        position=position_of(core, record),
        headline=headline_of(core, record),
        explanation=record.explanation,
        view_token=view_token,
    )
