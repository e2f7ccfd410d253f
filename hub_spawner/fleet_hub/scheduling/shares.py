"""How much of the fleet each user has had lately, weighed against their share.

Use is the dominant share (Ghodsi et al., DRF) of what is held, over time, and half of
it is forgotten every half-life.  What starts counts at once as if it had run for a
while: otherwise a burst of a hundred requests would pass before any of them shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from fleet_contracts.catalog import ResourceClass, Shares
from fleet_contracts.workloads import Principal, Resources
from fleet_hub.scheduling.snapshot import (
    Allocation,
    Capacity,
    MachineState,
    Usage,
)


ENTRY_SECONDS: Final = 1800.0
"""What a start counts at least, however short it has run."""


def capacity_of(machines: Iterable[MachineState]) -> Capacity:
    """Return what *machines* have together."""
    facts = [machine.facts for machine in machines]
    return Capacity(
        cpu_milli=sum(item.cores_milli or 0 for item in facts),
        memory_bytes=sum(item.memory_bytes or 0 for item in facts),
        devices=sum(len(item.devices) for item in facts),
    )


def rate(resources: Resources, capacity: Capacity, *, devices: int) -> float:
    """Return the dominant share of the fleet that *resources* are: 0 to 1."""
    return max(
        _part(resources.cpu_milli, capacity.cpu_milli),
        _part(resources.memory_bytes, capacity.memory_bytes),
        _part(devices, capacity.devices),
    )


def asked_rate(chosen: ResourceClass, capacity: Capacity) -> float:
    """Return the dominant share of the fleet that a workload of this class would be."""
    return rate(
        Resources(cpu_milli=chosen.cpu_milli, memory_bytes=chosen.memory_bytes),
        capacity,
        devices=chosen.devices,
    )


def settle(
    usage: Usage | None,
    allocation: Allocation,
    *,
    until: float,
    capacity: Capacity,
    half_life_seconds: float,
) -> Usage:
    """Return *usage* with *allocation* added, which ended at *until*.

    The controller calls it once for each release and stores the result.
    """
    before = 0.0 if usage is None else decayed(usage, until, half_life_seconds)
    held = rate(allocation.resources, capacity, devices=allocation.devices)
    added = held * _remembered(until - allocation.since, half_life_seconds)
    return Usage(amount=before + added, as_of=until)


def decayed(usage: Usage, now: float, half_life_seconds: float) -> float:
    """Return what is left of *usage* at *now*; a clock that went back adds nothing."""
    age = max(0.0, now - usage.as_of)
    return usage.amount * math.pow(0.5, age / half_life_seconds)


def weight_of(principal: Principal, shares: Shares) -> float:
    """Return the weight of *principal*: their own, else the best of their groups."""
    own = shares.users.get(principal.name)
    if own is not None:
        return own
    return max(
        (shares.groups[group] for group in principal.groups if group in shares.groups),
        default=1.0,
    )


class Ledger:
    """What each user has used by now, running work included, before weights.

    It follows starts and ends, so that a look costs nothing however much runs.
    """

    def __init__(
        self,
        usage: Mapping[int, Usage],
        *,
        now: float,
        capacity: Capacity,
        half_life_seconds: float,
    ) -> None:
        """Begin with what was used before, and nothing running."""
        self.capacity = capacity
        self._half_life = half_life_seconds
        self._now = now
        self._used = {
            user: decayed(item, now, half_life_seconds) for user, item in usage.items()
        }
        self._rates: dict[int, float] = {}

    def start(self, allocation: Allocation) -> None:
        """Count *allocation*, from its own start on."""
        user, held = allocation.user_id, self._rate(allocation)
        past = held * _remembered(self._now - allocation.since, self._half_life)
        self._used[user] = self._used.get(user, 0.0) + past
        self._rates[user] = self._rates.get(user, 0.0) + held

    def go_on(self, before: Allocation, after: Allocation) -> None:
        """Count *after* in place of *before*, which is what it was until now.

        What it used was counted as it went, and its start once.
        """
        held = self._rate(after) - self._rate(before)
        self._rates[after.user_id] += held

    def end(self, allocation: Allocation) -> None:
        """Count *allocation* no further; what it used stays used."""
        self._rates[allocation.user_id] -= self._rate(allocation)

    def used(self, now: float) -> dict[int, float]:
        """Return what each user has used by *now*."""
        seconds = max(0.0, now - self._now)
        self._now = max(now, self._now)
        kept = math.pow(0.5, seconds / self._half_life)
        running = _accrued(seconds, self._half_life)
        self._used = {
            user: amount * kept + self._rates.get(user, 0.0) * running
            for user, amount in self._used.items()
        }
        return dict(self._used)

    def _rate(self, allocation: Allocation) -> float:
        return rate(allocation.resources, self.capacity, devices=allocation.devices)


def _remembered(seconds: float, half_life_seconds: float) -> float:
    """Return what one unit counts that has been held for *seconds* until now.

    The entry counts at the start and is forgotten like everything else.
    """
    age = max(0.0, seconds)
    entry = ENTRY_SECONDS * math.pow(0.5, age / half_life_seconds)
    return entry + _accrued(age, half_life_seconds)


def _accrued(seconds: float, half_life_seconds: float) -> float:
    forgets = math.log(2) / half_life_seconds
    return -math.expm1(-seconds * forgets) / forgets


def _part(amount: int, whole: int) -> float:
    return amount / whole if whole else 0.0
