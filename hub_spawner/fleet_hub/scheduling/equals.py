"""Which machines answer one request alike, so that one of them is asked for all?

Machines of one signature with equal amounts free do, the disk aside: that differs from
machine to machine, and only what it comes to is alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fleet_contracts.reasons import Explanation
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.interests import Interest, Part
from fleet_hub.scheduling.vectors import DISK
from fleet_hub.scheduling.waiter import Waiter


def equal_machines(fleet: Fleet, waiter: Waiter, part: Part) -> Iterator[list[str]]:
    """Yield the machines of *part*, those together that give *waiter* one reason.

    They come by name.  All their numbers are equal but those of a disk.  Promises are
    not looked at: they only tell machines apart that have room.
    """
    interest, rejected_by = waiter.interest, waiter.waiting.rejected_by
    is_whole = part.own is None and part.others is None and interest.pin is None
    wanted = None if is_whole else members(interest, part)
    disk = waiter.request.chosen.disk_bytes
    for names in _equal_amounts(part):
        meant = names if wanted is None else [it for it in names if it in wanted]
        if rejected_by:
            yield from ([name] for name in meant if name in rejected_by)
            meant = [name for name in meant if name not in rejected_by]
        if disk:
            yield from _by_disk(fleet, meant, disk)
        elif meant:
            yield meant


def members(interest: Interest, part: Part) -> Collection[str]:
    """Return the machines that *part* is about."""
    if interest.pin is not None:
        return {interest.pin.machine}
    if part.own is not None:
        return part.group.owners[part.own]
    return {
        name
        for owner, names in part.group.owners.items()
        if owner != part.others
        for name in names
    }


def _equal_amounts(part: Part) -> Iterator[list[str]]:
    group = part.group
    yield from group.pool.buckets.values()
    troubled: dict[tuple[object, ...], list[str]] = {}
    for name, entry in sorted(group.troubled.items()):
        troubled.setdefault(_said(entry.trouble), []).append(name)
    yield from troubled.values()


def _said(why: Explanation | None) -> tuple[object, ...]:
    """Return what is equal for troubles that say the same."""
    return () if why is None else (why.reason, why.subject, why.detail, why.requested)


def _by_disk(fleet: Fleet, names: list[str], disk: int) -> Iterator[list[str]]:
    """Yield *names* by what their disks come to."""
    enough: list[str] = []
    short: list[str] = []
    small: list[str] = []
    unknown: list[str] = []
    entries = fleet.entries
    for name in names:
        entry = entries[name]
        capacity = entry.capacity[DISK]
        if capacity < disk:
            is_known = capacity or entry.machine.facts.disk_free_bytes is not None
            (small if is_known else unknown).append(name)
        elif entry.free[DISK] < disk:
            short.append(name)
        else:
            enough.append(name)
    yield from filter(None, (enough, short, small, unknown))
