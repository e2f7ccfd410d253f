"""Which of equal machines have enough disk?  That differs from machine to machine."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from fleet_hub.scheduling.vectors import DISK, Vector


if TYPE_CHECKING:
    from fleet_hub.scheduling.entries import Entry


MOST_AMOUNTS: Final = 8
"""Of so many amounts it is remembered what they come to in a bucket."""


class ByDisk(NamedTuple):
    """Machines by what their disks come to, each in the order they were given."""

    enough: list[str]
    short: list[str]
    """Too full now."""
    small: list[str]
    """Too small for ever."""
    unknown: list[str]

    def part_of(self, entry: Entry, disk_bytes: int) -> list[str]:
        """Return among which of them a machine belongs."""
        if entry.capacity[DISK] < disk_bytes:
            is_known = entry.machine.facts.disk_free_bytes is not None
            return self.small if is_known else self.unknown
        return self.short if entry.free[DISK] < disk_bytes else self.enough

    def drop(self, name: str) -> None:
        """Take a machine out, wherever it is."""
        for names in self:
            place = bisect_left(names, name)
            if names[place : place + 1] == [name]:
                del names[place]


def by_disk(
    entries: Mapping[str, Entry], names: Iterable[str], disk_bytes: int
) -> ByDisk:
    """Return *names* by whether *disk_bytes* are free there."""
    found = ByDisk([], [], [], [])
    for name in names:
        found.part_of(entries[name], disk_bytes).append(name)
    return found


class Disks:
    """Remembers it for the buckets of one pool, and follows what changes in them."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        """Begin with nothing remembered of *entries*."""
        self._entries = entries
        self._known: dict[Vector, dict[int, ByDisk]] = {}
        self._changed: dict[Vector, set[str]] = {}
        """Who came into a known bucket, or left it, since somebody asked."""
        self._free: dict[Vector, list[int]] = {}
        self._whole: dict[Vector, list[int]] = {}

    def of(self, bucket: Vector, names: Iterable[str], disk_bytes: int) -> ByDisk:
        """Return *names*, which are all of *bucket*; the lists are not to be changed."""
        known = self._known.setdefault(bucket, {})
        changed = self._changed.pop(bucket, ())
        for amount, found in known.items():
            for name in changed:
                self._sort_in(found, bucket, name, amount)
        if disk_bytes not in known:
            if len(known) >= MOST_AMOUNTS:
                known.clear()
            known[disk_bytes] = by_disk(self._entries, names, disk_bytes)
        return known[disk_bytes]

    def count_free(self, bucket: Vector, names: Iterable[str], disk_bytes: int) -> int:
        """Return on how many of *names*, which are all of *bucket*, so much is free."""
        amounts = self._free.get(bucket)
        if amounts is None:
            amounts = sorted(self._entries[name].free[DISK] for name in names)
            self._free[bucket] = amounts
        return len(amounts) - bisect_left(amounts, disk_bytes)

    def count_large(self, bucket: Vector, names: Iterable[str], disk_bytes: int) -> int:
        """Return how many of *names*, which are all of *bucket*, have such a disk."""
        amounts = self._whole.get(bucket)
        if amounts is None:
            facts = (self._entries[name].machine.facts for name in names)
            amounts = sorted(each.disk_free_bytes or 0 for each in facts)
            self._whole[bucket] = amounts
        return len(amounts) - bisect_left(amounts, disk_bytes)

    def changed(self, bucket: Vector, name: str) -> None:
        """A machine came into *bucket*, left it, or is another one than it was."""
        self._free.pop(bucket, None)
        self._whole.pop(bucket, None)
        if bucket in self._known:
            self._changed.setdefault(bucket, set()).add(name)

    def forget(self, bucket: Vector) -> None:
        """No machine is in *bucket* any more."""
        for known in (self._known, self._changed, self._free, self._whole):
            known.pop(bucket, None)

    def _sort_in(self, found: ByDisk, bucket: Vector, name: str, amount: int) -> None:
        found.drop(name)
        entry = self._entries.get(name)
        if entry is not None and entry.bucket == bucket:
            insort(found.part_of(entry, amount), name)
