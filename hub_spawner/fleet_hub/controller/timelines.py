"""The timeline document of one workload, as of one moment."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Final

from fleet_contracts.allocations import PHASE
from fleet_contracts.timeline import (
    LikelyStart,
    Limits,
    Timeline,
    TimelineEvent,
    TimelineKind,
)
from fleet_hub.admission import ServerStatus
from fleet_hub.controller.core import Core
from fleet_hub.controller.discretion import events_of, explanation_of
from fleet_hub.controller.idleness import idle_ends
from fleet_hub.controller.opening import unopened_since
from fleet_hub.controller.records import Workload
from fleet_hub.controller.retelling import wait_of
from fleet_hub.controller.time_limits import time_limits_of
from fleet_hub.controller.words import headline_of, position_of


MOST_RUNS: Final = 10
"""How many earlier starts a document tells of."""
MOST_MILESTONES: Final = 100
_MILESTONES: Final = frozenset(
    {
        *(TimelineKind.ASKED, TimelineKind.READY, TimelineKind.STOPPED),
        *(TimelineKind.FAILED, TimelineKind.REFUSED),
    }
)


def timeline_of(core: Core, record: Workload) -> Timeline:
    """Return the document that every page shows.

    The current start with all that is kept of it, and how earlier ones went.
    """
    profile = core.catalogs.current().profile_named(record.choice.profile)
    assignment, wait = record.assignment, wait_of(core, record)
    kept = events_of(core, record.id)
    events = tuple(event for event in kept if event.generation == record.generation)
    return Timeline.model_validate(
        {
            "as_of": core.clock.now(),
            "workload": record.id,
            "generation": record.generation,
            "user": record.principal.name,
            "server": record.server_name,
            "profile": record.choice.profile,
            "profile_title": profile.title if profile else None,
            "profile_version": record.profile_version,
            "class": record.choice.class_name,
            "machine": assignment.machine if assignment else None,
            "state": record.state,
            "phase": PHASE[record.state],
            "position": position_of(core, record),
            "parked": record.parked,
            "headline": headline_of(core, record),
            # What is kept with it is as of the last change of its cause.
            "explanation": explanation_of(core, record)
            if wait is None
            else wait.explanation,
            "limits": limits_of(core, record).model_copy(update=_times(core, record)),
            "events": _earlier(kept, record.generation) + events,
            "truncated": not events or events[0].kind is not TimelineKind.ASKED,
        }
    )


def _times(core: Core, record: Workload) -> dict[str, object]:
    """Return by when a workload that waits is promised to start, and likely does."""
    wait, now = wait_of(core, record), core.clock.now()
    bound = None if wait is None else wait.no_later_than
    if bound is None:
        return {"idle_ends": idle_ends(core, record)}
    likely, profile = None, core.catalogs.current().profile_named(record.choice.profile)
    if record.outset is not None and profile is not None:
        name = record.choice.class_name or profile.classes[0]
        likely = core.model.history.likely(
            name, record.outset, now=now.timestamp(), bound=bound
        )
    return {
        "starts_by": datetime.fromtimestamp(bound, UTC),
        "longer_than_usual": record.outset is not None
        and record.outset.is_outlasted(now.timestamp()),
        "likely": None
        if likely is None
        else LikelyStart(
            early=datetime.fromtimestamp(likely.early, UTC),
            late=datetime.fromtimestamp(likely.late, UTC),
            samples=likely.samples,
        ),
    }


def _earlier(
    kept: tuple[TimelineEvent, ...], generation: int
) -> tuple[TimelineEvent, ...]:
    """Return what tells how the last starts before *generation* went."""
    milestones = [
        event
        for event in kept
        if generation - MOST_RUNS <= event.generation < generation
        and event.kind in _MILESTONES
    ]
    return tuple(milestones[-MOST_MILESTONES:])


def etag_of(timeline: Timeline) -> str:
    """Return a tag that changes when the document does, the moment aside."""
    text = timeline.model_dump_json(by_alias=True, exclude={"as_of"})
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def limits_of(core: Core, record: Workload) -> Limits:
    """Return the limits that are in force, or will be once the workload holds anything."""
    assignment, time_limits = record.assignment, time_limits_of(core, record)
    if assignment is None:
        return Limits(time_limits=time_limits)
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
        time_limits=time_limits,
    )


def status_of(core: Core, record: Workload, *, view_token: str) -> ServerStatus:
    """Return what the Hub needs to know of one server."""
    wait = wait_of(core, record)
    return ServerStatus(
        key=record.key,
        workload=record.id,
        generation=record.generation,
        state=record.state,
        parked=record.parked,
        attended=core.is_attended(record.id),
        holds=record.holds,
        unopened_since=unopened_since(core, record),
        unclaimed=record.assignment is not None and not record.assignment.launched,
        url=record.url,
        position=position_of(core, record),
        headline=headline_of(core, record),
        explanation=explanation_of(core, record) if wait is None else wait.explanation,
        view_token=view_token,
    )
