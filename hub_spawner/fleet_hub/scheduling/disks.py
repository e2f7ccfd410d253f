"""Which of equal machines have enough disk?  That differs from machine to machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from fleet_hub.scheduling.vectors import DISK, Vector


if TYPE_CHECKING:
    from fleet_hub.scheduling.entries import Entry


MOST_AMOUNTS: Final = 8
"""Of so many amounts it is remembered what they come to."""


class ByDisk(NamedTuple):
    """Machines by what their disks come to, each in the order they were given."""

    enough: list[str]
    short: list[str]
    """Too full now."""
    small: list[str]
    """Too small for ever."""
    unknown: list[str]


def by_disk(
    entries: Mapping[str, Entry], names: Iterable[str], disk_bytes: int
) -> ByDisk:
    """Return *names* by whether *disk_bytes* are free there."""
    found = ByDisk([], [], [], [])
    enough, short, small, unknown = found
    for name in names:
        entry = entries[name]
        if entry.capacity[DISK] < disk_bytes:
            is_known = entry.machine.facts.disk_free_bytes is not None
            (small if is_known else unknown).append(name)
        elif entry.free[DISK] < disk_bytes:
            short.append(name)
        else:
            enough.append(name)
    return found


class Disks:
    """Remembers it for the buckets of one pool, until one of their machines changes."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        """Begin with nothing remembered of *entries*."""
        self._entries = entries
        self._known: dict[int, dict[Vector, ByDisk]] = {}

    def of(self, bucket: Vector, names: Iterable[str], disk_bytes: int) -> ByDisk:
        """Return *names*, which are all of *bucket*; the lists are not to be changed."""
        if disk_bytes not in self._known and len(self._known) >= MOST_AMOUNTS:
            self._known.clear()
        known = self._known.setdefault(disk_bytes, {})
        if bucket not in known:
            known[bucket] = by_disk(self._entries, names, disk_bytes)
        return known[bucket]

    def forget(self, bucket: Vector) -> None:
        """Another machine is in *bucket*, or one less."""
        for known in self._known.values():
            known.pop(bucket, None)
