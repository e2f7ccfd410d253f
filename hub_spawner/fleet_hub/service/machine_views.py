"""What the machines page shows of a machine: the record's word apart from its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from fleet_contracts.capabilities import Identity, WorkerCapabilities
from fleet_hub.controller.core import Core
from fleet_hub.controller.machines import picture_of
from fleet_hub.controller.model import Presence
from fleet_hub.controller.records import MachineRecord, Workload
from fleet_hub.machine_words import has_told, plain, resources_line, word
from fleet_hub.service.machine_sections import (
    FactRow,
    Section,
    age,
    row,
    sections_of,
    usage_of,
)
from fleet_hub.service.people import Visitor
from fleet_hub.service.views import spoken


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldView:
    """Something that a machine holds now."""

    text: str
    workload: str | None
    """Its page, where the visitor may see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineView:
    """One machine, as one visitor may see it."""

    name: str
    online: bool
    presence: str
    since: datetime
    record: tuple[FactRow, ...]
    """Who it is: the controller's word."""
    agent: str
    told: str
    """How far its own word goes."""
    sections: tuple[Section, ...]
    usage: Section | None
    holds: tuple[HeldView, ...]
    foreign: int
    """How many allocations it runs that nobody here issued."""


def machine_view(core: Core, record: MachineRecord, visitor: Visitor) -> MachineView:
    """Return what *visitor*, who may see the machine, is shown of it."""
    presence, now = core.model.presence[record.name], core.clock.now()
    picture = picture_of(core, record)
    return MachineView(
        name=record.name,
        online=presence.online,
        presence=_presence(presence, now),
        since=presence.since,
        record=_record(record, picture.identity, now),
        agent=word(record.agent_version),
        told=_told(picture, now),
        sections=sections_of(picture, now),
        usage=usage_of(picture, now),
        holds=tuple(
            _held(core, workload, visitor)
            for workload in core.model.holders(record.name)
        ),
        foreign=len(presence.foreign),
    )


def _presence(presence: Presence, now: datetime) -> str:
    lasted = spoken(max(0.0, (now - presence.since).total_seconds()))
    if presence.online:
        return f"online for {lasted}"
    if presence.heard_at is None:
        return f"offline: not heard since the controller started {lasted} ago"
    return f"offline for {lasted}"


def _record(
    record: MachineRecord, identity: Identity, now: datetime
) -> tuple[FactRow, ...]:
    rows = [
        row(label, word(fact.value), fact.observed, now)
        for label, fact in (
            ("Name", identity.name),
            ("Owner", identity.owner),
            ("Provider", identity.provider),
        )
    ]
    observed = identity.name.observed
    kind = "the Hub's own machine" if record.local else "a machine of the network"
    rows.append(row("Kind", kind, observed, now))
    for name, value in sorted(record.labels.items()):
        rows.append(row(f"Label {plain(name)}", plain(value), observed, now))
    if record.draining_by is not None:
        rows.append(row("Takes nothing new", plain(record.draining_by), observed, now))
    return tuple(rows)


def _told(picture: WorkerCapabilities, now: datetime) -> str:
    if not has_told(picture):
        return "It has not said yet what it can do, so all of it is unknown."
    at = picture.detected_at
    when = f", as of {age(at, now)}" if at is not None else ""
    more = "" if picture.settled else " Slow tools have not answered yet."
    return f"The machine's own word{when}.{more}"


def _held(core: Core, workload: Workload, visitor: Visitor) -> HeldView:
    may_see = visitor.may_see(workload)
    is_named = may_see or core.settings.names_visible
    who = plain(workload.principal.name or "a renamed user") if is_named else "somebody"
    server = (
        f"server “{plain(workload.server_name or 'default')}” of " if may_see else ""
    )
    assignment = workload.assignment
    what = f": {resources_line(assignment.resources)}" if assignment else ""
    return HeldView(
        text=f"{server}{who}, {workload.state.value}{what}",
        workload=workload.id if may_see else None,
    )
