"""How often could each class start now, and how often if nothing ran?

Asked for whoever may use a machine: whom it serves is another question.  Machines of
equal free amounts are counted at once, so that a large fleet is quickly looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fleet_contracts.catalog import Profile, Relation, ResourceClass
from fleet_contracts.reasons import Explanation
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Waiting
from fleet_hub.scheduling.vectors import Need, Vector


class Places(NamedTuple):
    """How often one class could start."""

    free: int
    """Beside all that runs; promises aside."""
    total: int
    """If nothing ran on the machines that take work."""


def places_of(planner: Planner, chosen: ResourceClass) -> Places:
    """Return how often *chosen* could start, on machines that take work now."""
    requests = tuple(_requests(planner, chosen))
    free = total = 0
    for group in planner.fleet.groups.values():
        outlooks = [
            planner.fleet.outlook(group, request, Relation.OWNER, None)
            for request in requests
        ]
        needs = {need for each in outlooks if each.placeable for need in each.needs}
        if not needs:
            continue
        for names in group.pool.buckets.values():
            # Of equal machines only the disks differ.
            alike = [names] if not chosen.disk_bytes else [[name] for name in names]
            for some in alike:
                entry = planner.fleet.entries[some[0]]
                free += len(some) * max(_times(entry.free, need) for need in needs)
                total += len(some) * max(_times(entry.capacity, need) for need in needs)
    return Places(free=free, total=total)


def _requests(planner: Planner, chosen: ResourceClass) -> Iterator[Request]:
    """Yield what somebody asks for who may choose any profile with the class."""
    for profile in planner.catalog.profiles:
        if chosen not in planner.catalog.classes_of(profile):
            continue
        waiting = Waiting(
            workload="",
            principal=_somebody(profile),
            profile=profile.name,
            asked_at=0.0,
        )
        request = planner.request(waiting, chosen.name)
        if not isinstance(request, Explanation):
            yield request


def _somebody(profile: Profile) -> Principal:
    """Return one of the profile's audience."""
    audience = profile.audience
    name = audience.users[0] if audience.users else ""
    return Principal(user_id=0, name=name, groups=audience.groups)


def _times(amounts: Vector, need: Need) -> int:
    """Return how often *need* fits into *amounts* at once."""
    times = [
        max(0, amounts[position]) // wanted
        for position, wanted in enumerate(need.fixed)
        if wanted
    ]
    if need.devices:
        devices = sum(max(0, amounts[position]) for position in need.types)
        times.append(devices // need.devices)
    return min(times, default=0)
