"""Which ways out there are where a choice can never run beside a server's files, and why
no copy is among them: the same for the spawn form, an explanation and a timeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fleet_contracts.catalog import Catalog
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import DriverName, Principal
from fleet_hub.scheduling.alternatives import alternatives
from fleet_hub.scheduling.decisions import Alternative, AlternativeKind
from fleet_hub.scheduling.explain import what_if
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Pin


KEEP_FILES: Final = frozenset({DriverName.NATIVE, DriverName.DOCKER})
"""The drivers whose notebooks leave files behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copying:
    """What is known of copying files from machine to machine."""

    offered: bool = False
    """The fleet copies files at all."""
    unfit: Mapping[str, Reason] = field(default_factory=dict)
    """Machines that can be given none, with why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaysOut:
    """What may be done instead."""

    ways: tuple[Alternative, ...] = ()
    no_copy: Explanation | None = None
    """Why no copy of the files is among the ways; None: it is, or there are none."""


def copy_obstacle(
    pin: Pin, *, offered: bool, too_old: bool, online: bool
) -> Explanation | None:
    """Return why the files at *pin* cannot be copied, wherever to; None: they can."""
    if not offered or pin.driver not in KEEP_FILES:
        return Explanation(reason=Reason.COPY_NOT_OFFERED)
    if too_old:
        return Explanation(reason=Reason.AGENT_TOO_OLD, machine=pin.machine)
    if not online:
        return Explanation(reason=Reason.COPY_SOURCE_AWAY, machine=pin.machine)
    return None


def ways_out(
    planner: Planner,
    principal: Principal,
    profile: str,
    class_name: str,
    *,
    pin: Pin,
    copying: Copying,
) -> WaysOut:
    """Return what *principal* may do where *class_name* is impossible beside the files."""
    home = planner.fleet.entries.get(pin.machine)
    obstacle = copy_obstacle(
        pin,
        offered=copying.offered,
        too_old=copying.unfit.get(pin.machine) is Reason.AGENT_TOO_OLD,
        online=home is not None and home.machine.online,
    )
    unfit = None if obstacle else copying.unfit
    found = tuple(
        alternatives(planner, principal, profile, class_name, pin, unfit=unfit)
    )
    return WaysOut(ways=found, no_copy=_no_copy(copying, found, obstacle))


def ways_back(
    planner: Planner,
    principal: Principal,
    profile: str,
    class_name: str | None,
    *,
    pin: Pin,
    copying: Copying,
) -> WaysOut:
    """Return the same for a choice that may be possible by now; then there are none."""
    offered = planner.catalog.profile_named(profile)
    name = class_name or (offered.classes[0] if offered is not None else "")
    if what_if(planner, principal, profile, class_name, pin=pin).choosable:
        return WaysOut()
    return ways_out(planner, principal, profile, name, pin=pin, copying=copying)


def told(found: WaysOut, catalog: Catalog) -> tuple[Explanation, ...]:
    """Return the ways as codes, and last why no copy is among them."""
    ways = tuple(explained(way, catalog) for way in found.ways)
    return ways if found.no_copy is None else (*ways, found.no_copy)


def explained(way: Alternative, catalog: Catalog) -> Explanation:
    """Return *way* as a code, with the class as people know it."""
    chosen = catalog.class_named(way.class_name)
    title = chosen.title if chosen is not None else way.class_name
    return Explanation(
        reason=Reason(way.kind.value), machine=way.machine, subject=title
    )


def _no_copy(
    copying: Copying, found: tuple[Alternative, ...], obstacle: Explanation | None
) -> Explanation | None:
    fresh = [way for way in found if way.kind is AlternativeKind.FRESH_FOLDER]
    if not fresh or any(way.kind is AlternativeKind.COPY_FILES for way in found):
        return None
    why = copying.unfit.get(fresh[0].machine or "", Reason.AGENT_TOO_OLD)
    return obstacle or Explanation(reason=why, machine=fresh[0].machine)
