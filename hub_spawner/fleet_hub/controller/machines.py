"""What the controller can say about a machine, and what it can ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from pydantic import ValidationError

from fleet_contracts.capabilities import Usage, WorkerCapabilities
from fleet_contracts.device_use import PROGRAM_MIB
from fleet_contracts.identity import with_identity
from fleet_contracts.protocol import Redetect
from fleet_hub.controller import idleness
from fleet_hub.controller.core import Core
from fleet_hub.controller.foreign_use import foreign_use
from fleet_hub.controller.model import Presence
from fleet_hub.controller.records import MachineRecord


log = structlog.get_logger()

REST: Final = timedelta(minutes=10)
"""A device that does nothing for less may only wait for its program's next step."""
STALE: Final = timedelta(minutes=5)
"""An observation that is repeated for longer says nothing of the devices any more."""


def look_again(core: Core, machine: str) -> bool:
    """Ask *machine* to look at itself again; False: it is away.

    What it finds comes as a change of its capabilities.
    """
    return core.links.send(machine, Redetect())


def picture_of(core: Core, record: MachineRecord) -> WorkerCapabilities:
    """Return the machine's own word about its hardware, and ours about who it is.

    A word that is not understood is no word: everything in it is unknown.
    """
    try:
        told = WorkerCapabilities.model_validate(record.capabilities)
    except ValidationError:
        told = WorkerCapabilities()
    usage = core.model.presence[record.name].usage
    if usage is not None:
        told = told.model_copy(update={"usage": usage})
    return with_identity(
        told,
        name=record.name,
        owner=record.owner,
        provider=record.supplier,
        recorded_at=record.enrolled_at,
    )


def observe(core: Core, machine: str, usage: Mapping[str, Any] | None) -> None:
    """Keep how busy *machine* says that it is, until its next word.

    It is shown, and tells which of equal free devices to leave alone: nothing is
    written.  Nobody starts or waits because of it, unless programs outside the fleet
    began or ceased to use a device.
    """
    if usage is None:
        return
    presence = core.model.presence[machine]
    earlier, now = presence.usage, core.clock.now()
    try:
        presence.usage = Usage.model_validate(usage)
    except ValidationError as error:
        # The heartbeat counts all the same: an observation must not cost a link.
        if not presence.usage_doubted:
            presence.usage_doubted = True
            where = [".".join(map(str, fault["loc"])) for fault in error.errors()[:5]]
            log.warning("usage not understood", machine=machine, fields=where)
        return
    in_use = _in_use(presence.usage)
    if earlier is None or earlier.observed != presence.usage.observed:
        presence.observed_at = now
    outside = foreign_use(presence, presence.usage, now, stale=STALE)
    if presence.used_outside != outside:
        presence.used_outside = outside
        core.model.stirred.add(machine)
        core.want_cycle()
    rested = _rested(presence, presence.usage, now)
    unused = _unused(presence, presence.usage)
    idleness.take_in(presence, presence.usage, now)
    idle = idleness.told_of(core, machine, now)
    seen = (in_use, rested, unused, idle)
    before = presence.in_use, presence.rested, presence.unused_memory_bytes
    if (*before, presence.idle) != seen:
        presence.in_use, presence.rested, presence.unused_memory_bytes = seen[:3]
        presence.idle = idle
        core.model.stirred.add(machine)


def _unused(presence: Presence, usage: Usage) -> int | None:
    """Return at least how much memory nothing uses, in eighths of all that there is.

    It moves with every breath of a machine, and nobody is to be told each time.
    """
    capacity, unused = presence.facts.memory_bytes, usage.memory_available_bytes
    if not capacity or unused is None:
        return None
    step = max(1, capacity // 8)
    return min(unused, capacity) // step * step


def _rested(
    presence: Presence, usage: Usage, now: datetime
) -> tuple[tuple[str, float], ...]:
    """Return the devices that have done nothing for a while, with since when.

    What counts is that nothing is computed: memory that a resting program keeps is no
    work, and neither is an open browser.
    """
    observed_at = presence.observed_at
    is_fresh = observed_at is not None and now - observed_at < STALE
    resting = {
        device.uuid: presence.resting.get(device.uuid, now)
        for device in usage.devices
        if is_fresh and device.uuid is not None and device.utilisation_percent == 0
    }
    presence.resting = resting
    return tuple(
        (uuid, since.timestamp())
        for uuid, since in sorted(resting.items())
        if now - since >= REST
    )


def _in_use(usage: Usage) -> tuple[str, ...]:
    """Return the devices that somebody computes on, by UUID."""
    return tuple(
        sorted(
            device.uuid
            for device in usage.devices
            if device.uuid is not None and (device.memory_used_mib or 0) >= PROGRAM_MIB
        )
    )
