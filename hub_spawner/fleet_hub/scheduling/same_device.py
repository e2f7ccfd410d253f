"""To which machine does a device count that several machines say they have?

One computer may run two agents, under two names.  The same UUID from both at once is
the same device: it is given through one of them, or two workloads would get it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fleet_contracts.devices import MACOS
from fleet_contracts.placement_facts import PlaceableDevice, PlacementFacts
from fleet_contracts.workloads import DriverName


_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What ties a machine to a device."""

    machine: str
    since: float
    """When it was enrolled."""
    reports: bool = False
    """It is online and says that it has the device."""
    holds: bool = False
    """Something on it has the device, or may have: it may be silent."""


def counts_to(claims: Iterable[Claim]) -> str | None:
    """Return the machine to which a device counts; None: to nobody.

    Whoever holds it comes first, then whoever was enrolled first.
    """
    known = [claim for claim in claims if claim.holds or claim.reports]
    first = min(
        known,
        key=lambda claim: (not claim.holds, claim.since, claim.machine),
        default=None,
    )
    return None if first is None else first.machine


def named_by(facts: PlacementFacts, boot_id: str | None) -> frozenset[str]:
    """Return what names the devices of a machine everywhere, those that work or may.

    A Mac's GPU has no name of its own, and there is one of it: what names this start of
    the Mac names it.  A pretended Mac, which runs nothing natively, has none.
    """
    found = {
        device.uuid
        for device in facts.devices
        if device.uuid is not None and device.healthy is not False
    }
    metal = metal_of(boot_id)
    runs_natively = DriverName.NATIVE in facts.drivers and facts.os == MACOS
    return frozenset(found | {metal} if metal and runs_natively else found)


def metal_of(boot_id: str | None) -> str | None:
    """Return what names the GPU of a Mac; None: nothing does that others cannot share."""
    if boot_id is None or _UUID.fullmatch(boot_id) is None:
        return None
    return f"metal {boot_id}"


def without_others(
    facts: PlacementFacts, elsewhere: Mapping[str, str]
) -> PlacementFacts:
    """Return *facts* without the use of devices that count to another machine.

    *elsewhere* says to which, by UUID.
    """
    if not elsewhere:
        return facts
    return facts.model_copy(
        update={"devices": tuple(_own(device, elsewhere) for device in facts.devices)}
    )


def _own(device: PlaceableDevice, elsewhere: Mapping[str, str]) -> PlaceableDevice:
    other = elsewhere.get(device.uuid or "")
    if other is None:
        return device
    return device.model_copy(
        update={"usable": False, "healthy": None, "counts_to": other}
    )
