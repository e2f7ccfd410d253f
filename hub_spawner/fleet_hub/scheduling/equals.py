"""Which machines answer one request alike, so that one of them is asked for all?

Machines of one signature with equal amounts free do, the disk aside: that differs from
machine to machine, and only what it comes to is alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from fleet_contracts.reasons import Explanation
from fleet_hub.scheduling.disks import by_disk
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.interests import Interest, Part
from fleet_hub.scheduling.vectors import Vector
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
    for bucket, names in _equal_amounts(part):
        meant = names if wanted is None else [it for it in names if it in wanted]
        if rejected_by:
            yield from ([name] for name in meant if name in rejected_by)
            meant = [name for name in meant if name not in rejected_by]
        if not disk:
            told: Iterable[list[str]] = (meant,)
        elif meant is names and bucket is not None:
            told = part.group.pool.disks.of(bucket, names, disk)
        else:
            told = by_disk(fleet.entries, meant, disk)
        yield from filter(None, told)


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


def _equal_amounts(part: Part) -> Iterator[tuple[Vector | None, list[str]]]:
    """Yield machines with equal amounts free, with their bucket if they are in one."""
    group = part.group
    yield from group.pool.buckets.items()
    troubled: dict[tuple[object, ...], list[str]] = {}
    for name, entry in sorted(group.troubled.items()):
        troubled.setdefault(_said(entry.trouble), []).append(name)
    yield from ((None, names) for names in troubled.values())


def _said(why: Explanation | None) -> tuple[object, ...]:
    """Return what is equal for troubles that say the same."""
    return () if why is None else (why.reason, why.subject, why.detail, why.requested)
