"""Room for whoever nobody can tell a time, or small work would starve large work.

Where holders have no end, a request that needs much at once might never find it free:
each part that is given back would go to smaller requests behind it.  So the first of
its kind that has waited long enough keeps a machine, and what is given back there stays
with it.  It is no promise of a time.  Work that has an end runs there meanwhile; work
without one waits behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fleet_hub.scheduling.entries import Entry, Found
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.profile import FOREVER, SOMEDAY
from fleet_hub.scheduling.promises import Promises
from fleet_hub.scheduling.vectors import (
    CPU,
    DISK,
    MEMORY,
    METAL,
    Need,
    Vector,
    assign,
)
from fleet_hub.scheduling.waiter import Waiter


PATIENCE_SECONDS: Final = 600.0
"""So long others may pass who need less; what ends soon clears by itself meanwhile."""

_Missing = tuple[int, ...]


def patient_until(waiter: Waiter) -> float:
    """Return from when on room is kept for *waiter*, if nothing else helps."""
    return waiter.waiting.asked_at + PATIENCE_SECONDS


def room_to_keep(
    fleet: Fleet, promises: Promises, waiter: Waiter
) -> tuple[Found, list[Waiter]] | None:
    """Return where room is kept for *waiter*, and who has to look elsewhere for it.

    The machine that lacks least of it, the first by name.  None: it is kept that one
    already, or each is for one of its kind or for somebody before it in the line.
    """
    alike = promises.keeper_alike(waiter.interest)
    if alike is not waiter and not promises.goes_before(waiter, alike):
        return None
    best: tuple[_Missing, str, Need] | None = None
    for missing, names, need in sorted(_candidates(fleet, waiter)):
        if best is not None and missing > best[0]:
            break
        for name in names:
            if _may_keep(fleet.entries[name], promises, waiter, need):
                best = min(best or (missing, name, need), (missing, name, need))
                break
    if best is None or (alike is waiter and promises.keeper_on(best[1]) is waiter):
        return None
    _, name, need = best
    amounts = assign(fleet.entries[name].capacity, need) or ()
    others = (promises.keeper_on(name), alike)
    displaced = {it.workload: it for it in others if it is not None}
    return Found(SOMEDAY, name, need, amounts), list(displaced.values())


def lacks_less(fleet: Fleet, keeper: Waiter, name: str) -> bool:
    """Return whether machine *name* lacks less than the one that is kept."""
    kept = keeper.found
    if kept is None or name == kept.machine:
        return False
    entry, own = fleet.entries[name], fleet.entries[kept.machine]
    least = _missing(own.free, kept.need)
    return any(
        assign(entry.capacity, need) is not None and _missing(entry.free, need) < least
        for need in fleet.needs_on(keeper.interest, entry)
    )


def _candidates(
    fleet: Fleet, waiter: Waiter
) -> Iterator[tuple[_Missing, list[str], Need]]:
    """Yield what machines lack of what *waiter* needs, and which lack just that."""
    interest = waiter.interest
    if interest.pin is not None:
        entry = fleet.entries.get(interest.pin.machine)
        if entry is not None and entry.trouble is None:
            for need in fleet.needs_on(interest, entry):
                yield _missing(entry.free, need), [entry.machine.name], need
    for view in interest.views:
        for bucket, names in view.horizon.pool.buckets.items():
            for need in view.horizon.needs:
                yield (view.spared, *_missing(bucket, need)), names, need


def _may_keep(entry: Entry, promises: Promises, waiter: Waiter, need: Need) -> bool:
    """Return whether the machine has it all once nobody holds anything."""
    name = entry.machine.name
    keeper = promises.keeper_on(name)
    if (
        name in waiter.waiting.rejected_by
        or assign(entry.capacity, need) is None
        or not (keeper is waiter or promises.goes_before(waiter, keeper))
    ):
        return False
    kept = None if keeper is None else keeper.workload
    # What is promised for good to somebody else is not given back one day.
    return all(
        claim.end < FOREVER or workload == kept
        for workload, claim in entry.claims.items()
    )


def _missing(free: Vector, need: Need) -> _Missing:
    devices = sum(max(0, free[position]) for position in need.types)
    return (
        max(0, need.devices - devices),
        *(
            max(0, need.fixed[position] - free[position])
            for position in (METAL, CPU, MEMORY, DISK)
        ),
    )
