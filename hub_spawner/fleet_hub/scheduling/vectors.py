"""Amounts of one machine as vectors, so that holds add up and times can be compared.

The first four entries are CPU, memory, disk and Metal; then comes one entry for each
type of whole device that the machine's signature has.
"""

from __future__ import annotations

from operator import add, sub
from typing import Final, NamedTuple

from fleet_contracts.workloads import DriverName


Vector = tuple[int, ...]

CPU: Final = 0
MEMORY: Final = 1
DISK: Final = 2
METAL: Final = 3
FIRST_TYPE: Final = 4
"""Where the device types begin."""


class Need(NamedTuple):
    """What a request takes of a machine of one signature, through one driver."""

    driver: DriverName
    fixed: tuple[int, int, int, int]
    devices: int
    """Whole devices, of any of *types*."""
    types: tuple[int, ...]
    """Positions of the device types that suit, the least capable first."""
    sizes: tuple[int, ...] = ()
    """The memory of a device of each of *types*; what nobody knows counts as 0."""


def plus(left: Vector, right: Vector) -> Vector:
    """Return the sum of two vectors of one machine."""
    return tuple(map(add, left, right))


def minus(left: Vector, right: Vector) -> Vector:
    """Return the difference of two vectors of one machine."""
    return tuple(map(sub, left, right))


def lowest(left: Vector, right: Vector) -> Vector:
    """Return the smaller of each pair of entries."""
    return tuple(map(min, left, right))


def assign(free: Vector, need: Need) -> Vector | None:
    """Return what *need* takes of *free*; None: it does not fit.

    Nothing is asked of an amount that is not needed: it may be unknown or overdrawn.
    """
    cpu, memory, disk, metal = fixed = need.fixed
    if (
        (cpu and free[CPU] < cpu)
        or (memory and free[MEMORY] < memory)
        or (disk and free[DISK] < disk)
        or (metal and free[METAL] < metal)
    ):
        return None
    left = need.devices
    if not left:
        return fixed + (0,) * (len(free) - FIRST_TYPE)
    taken = [0] * (len(free) - FIRST_TYPE)
    for position in need.types:
        here = min(left, free[position])
        if here > 0:
            taken[position - FIRST_TYPE] = here
            left -= here
    return None if left else (*fixed, *taken)


def without_disk(need: Need) -> Need:
    """Return *need* as equal amounts answer it: the disk is asked of each machine."""
    cpu, memory, _, metal = need.fixed
    return need._replace(fixed=(cpu, memory, 0, metal))


def largest_taken(need: Need, taken: Vector) -> int:
    """Return the memory of the largest device among *taken*; 0: it takes none."""
    pairs = zip(need.types, need.sizes, strict=True)
    return max((size for position, size in pairs if taken[position]), default=0)


def devices_left(free: Vector, need: Need) -> int:
    """Return how many suitable devices stay free beside *need*."""
    return sum(free[position] for position in need.types) - need.devices
