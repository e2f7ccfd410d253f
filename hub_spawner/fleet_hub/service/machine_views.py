"""What the machines page shows of a machine: the record's word apart from its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fleet_contracts.capabilities import HostFacts, Identity, WorkerCapabilities
from fleet_contracts.catalog import Relation
from fleet_contracts.language import mark, said, say, say_many, translated
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.sentences import remedy, sentence
from fleet_contracts.telling import duration
from fleet_contracts.timeline_phrases import STATES
from fleet_hub.controller import same_devices
from fleet_hub.controller.core import Core
from fleet_hub.controller.governing import members_line
from fleet_hub.controller.machines import picture_of
from fleet_hub.controller.model import Presence
from fleet_hub.controller.records import MachineRecord, Workload
from fleet_hub.machine_words import (
    cores,
    counted,
    device_name,
    driver_names,
    gib,
    has_told,
    no_device,
    plain,
    resources_line,
    support_lines,
    unknown,
    word,
)
from fleet_hub.service.machine_sections import (
    FactRow,
    Section,
    age,
    row,
    sections_of,
    usage_of,
)
from fleet_hub.service.visitors import Visitor


_MOST_DEVICES: Final = 8


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
    trouble: tuple[str, ...]
    """What keeps work from it, or should worry somebody."""
    drained: bool
    set_aside: bool
    """Several starts went wrong there, and it rests."""
    admin_allows: Relation
    owner_allows: Relation
    members: str
    """As they are written; see ``governing.members_line``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRow:
    """One machine in the list."""

    name: str
    owner: str
    online: bool
    presence: str
    devices: str
    host: str
    support: tuple[str, ...]
    """How far its accelerators are supported, in words."""
    holds: int
    agent: str
    trouble: tuple[str, ...]
    """What keeps work from it, or should worry somebody."""


def machine_row(core: Core, record: MachineRecord) -> MachineRow:
    """Return a machine's line in the list."""
    presence, now = core.model.presence[record.name], core.clock.now()
    picture = picture_of(core, record)
    drivers = driver_names(picture)
    support = {
        f"{device.accelerator.value} {line}": None
        for device in picture.accelerators
        for line in support_lines(device.accelerator.value, drivers)
    }
    host = picture.host
    return MachineRow(
        name=record.name,
        owner=record.owner or say("nobody"),
        online=presence.online,
        presence=_presence(presence, now),
        devices=counted(map(device_name, picture.accelerators[:_MOST_DEVICES]))
        or no_device(picture),
        host=_host_line(host),
        support=tuple(support)[:_MOST_DEVICES],
        holds=sum(1 for _ in core.model.holders(record.name)),
        agent=word(record.agent_version),
        trouble=troubles(core, record),
    )


def _host_line(host: HostFacts) -> str:
    cores_milli, memory = (
        host.cores_allowed_milli.value,
        host.memory_allowed_bytes.value,
    )
    if cores_milli is None and memory is None:
        return unknown()
    return say("{cores} cores, {memory}", cores=cores(cores_milli), memory=gib(memory))


def troubles(core: Core, record: MachineRecord) -> tuple[str, ...]:
    """Return what keeps work from a machine, or should worry its owner."""
    found = []
    if not record.token_hash:
        found.append(say("Its token is revoked: it cannot connect."))
    if record.draining_by is not None:
        who = translated(plain(record.draining_by))
        found.append(say("It takes nothing new: drained by {who}.", who=who))
    until = core.model.set_aside_until(record.name, core.clock.now())
    if until is not None:
        time = f"{until:%Y-%m-%d %H:%M:%S} UTC"
        found.append(
            say(
                "It is set aside until {time}, because several starts went wrong there. "
                "Then it is tried again; Resume has it tried at once.",
                time=time,
            )
        )
    if not record.local and record.address is None:
        why = record.address_fault or Explanation(reason=Reason.ADDRESS_UNKNOWN)
        told = f"{sentence(why)} {remedy(why.reason)}"
        found.append(say("It gets no work. {why}", why=told))
    same = same_devices.elsewhere(core.model, record)
    if same:
        found.append(
            say(
                "It has a device that counts to {machine}, which says that it has the "
                "very same one: two agents run on one computer. Revoke the token of one.",
                machine=", ".join(map(plain, sorted(set(same.values())))),
            )
        )
    second = core.model.second_links.get(record.name)
    if second is not None:
        found.append(
            say_many(
                "A second agent tried to speak for it and was refused, once, last at "
                "%2. If it is none of yours, rotate the token.",
                "A second agent tried to speak for it and was refused, %1 times, last at "
                "%2. If it is none of yours, rotate the token.",
                second.count,
                f"{second.last_at:%Y-%m-%d %H:%M} UTC",
            )
        )
    return tuple(found)


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
        trouble=troubles(core, record),
        drained=record.draining_by is not None,
        set_aside=core.model.set_aside_until(record.name, now) is not None,
        admin_allows=record.admin_allows,
        owner_allows=record.owner_allows,
        members=members_line(record.members, record.member_groups),
    )


def _presence(presence: Presence, now: datetime) -> str:
    lasted = duration(max(0.0, (now - presence.since).total_seconds()))
    if presence.online:
        return say("online for {time}", time=lasted)
    if presence.heard_at is None:
        return say(
            "offline: not heard since the controller started {time} ago", time=lasted
        )
    return say("offline for {time}", time=lasted)


def _record(
    record: MachineRecord, identity: Identity, now: datetime
) -> tuple[FactRow, ...]:
    rows = [
        row(label, word(fact.value), fact.observed, now)
        for label, fact in (
            (say("Name"), identity.name),
            (say("Owner"), identity.owner),
            (say("Provider"), identity.provider),
        )
    ]
    observed = identity.name.observed
    kind = (
        say("the Hub's own machine")
        if record.local
        else say("a machine of the network")
    )
    rows.append(row(say("Kind"), kind, observed, now))
    if record.address is not None:
        shown = say(
            "{address}, tried by the controller", address=plain(record.address.address)
        )
        when = record.address.approved_at
        tried = observed and observed.model_copy(update={"observed_at": when})
        rows.append(row(say("Address"), shown, tried, now))
    for name, value in sorted(record.labels.items()):
        rows.append(
            row(say("Label {name}", name=plain(name)), plain(value), observed, now)
        )
    if record.draining_by is not None:
        rows.append(
            row(
                say("Takes nothing new"),
                translated(plain(record.draining_by)),
                observed,
                now,
            )
        )
    return tuple(rows)


def _told(picture: WorkerCapabilities, now: datetime) -> str:
    if not has_told(picture):
        return say("It has not said yet what it can do, so all of it is unknown.")
    at = picture.detected_at
    when = age(at, now) if at is not None else None
    told = said(
        mark("The machine's own word[, as of {when}]."), {"when": when} if when else {}
    )
    if picture.settled:
        return told
    return f"{told} {say('Slow tools have not answered yet.')}"


def _held(core: Core, workload: Workload, visitor: Visitor) -> HeldView:
    may_see = visitor.may_see(workload)
    is_named = may_see or core.settings.names_visible
    who = plain(workload.principal.name) or say("a renamed user")
    if not is_named:
        who = say("somebody")
    if may_see:
        server = plain(workload.server_name) or say("default")
        who = say("server “{server}” of {user}", server=server, user=who)
    assignment = workload.assignment
    what = f": {resources_line(assignment.resources)}" if assignment else ""
    return HeldView(
        text=f"{who}, {translated(STATES[workload.state])}{what}",
        workload=workload.id if may_see else None,
    )
