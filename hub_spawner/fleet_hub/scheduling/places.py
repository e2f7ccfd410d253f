"""How often could each class start now, and how often if nothing ran?

Asked for whoever may use a machine: whom it serves is another question.  Machines of
equal free amounts are counted at once, so that a large fleet is quickly looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fleet_contracts.catalog import Profile, Relation, ResourceClass
from fleet_contracts.reasons import Explanation
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.interests import Group
from fleet_hub.scheduling.outlooks import Outlook
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Waiting
from fleet_hub.scheduling.vectors import Need, Vector


class Places(NamedTuple):
    """How often one class could start."""

    free: int
    """Beside all that runs; promises aside."""
    total: int
    """If nothing ran on the machines that take work."""
    none_now: bool = False
    """Machines for it may be there, and none of them takes work now."""
    barred: Explanation | None = None
    """Why nobody may start it, whatever machines there are; None: somebody may."""


def places_of(planner: Planner, chosen: ResourceClass) -> Places:
    """Return how often *chosen* could start, on machines that take work now."""
    asked = tuple(_requests(planner, chosen))
    requests = [found for found in asked if not isinstance(found, Explanation)]
    barred = next((found for found in asked if isinstance(found, Explanation)), None)
    free = total = 0
    elsewhere = False
    for group in planner.fleet.groups.values():
        outlooks = [
            planner.fleet.outlook(group, request, Relation.OWNER, None)
            for request in requests
        ]
        elsewhere = elsewhere or _may_serve(group, outlooks)
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
    return Places(
        free=free,
        total=total,
        none_now=elsewhere and not total,
        barred=None if requests else barred,
    )


def _may_serve(group: Group, outlooks: Iterable[Outlook]) -> bool:
    """Return whether a machine of *group* serves one of them, or may once it speaks."""
    entries = (*group.pool.entries.values(), *group.troubled.values())
    return any(
        not outlook.hopeless
        and any(
            not outlook.needs
            or any(_times(entry.capacity, need) for need in outlook.needs)
            for entry in entries
        )
        for outlook in outlooks
    )


def _requests(
    planner: Planner, chosen: ResourceClass
) -> Iterator[Request | Explanation]:
    """Yield what somebody asks for who may choose any profile with the class, or why not."""
    for profile in planner.catalog.profiles:
        if chosen not in planner.catalog.classes_of(profile):
            continue
        refused: Explanation | None = None
        for principal in _audience(profile):
            waiting = Waiting(
                workload="", principal=principal, profile=profile.name, asked_at=0.0
            )
            found = planner.request(waiting, chosen.name)
            if not isinstance(found, Explanation):
                yield found
                break
            refused = refused or found
        else:
            if refused is not None:
                # A limit of each user for themselves names nobody.
                subject = refused.subject or None
                yield refused.model_copy(update={"subject": subject})


def _audience(profile: Profile) -> Iterator[Principal]:
    """Yield one of each sort of the profile's audience: other quotas bind the next."""
    audience = profile.audience
    if audience.everyone:
        yield Principal(user_id=0, name="")
    for name in audience.users:
        yield Principal(user_id=0, name=name)
    for group in audience.groups:
        yield Principal(user_id=0, name="", groups=(group,))


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
