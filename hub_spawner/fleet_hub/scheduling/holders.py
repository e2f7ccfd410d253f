"""Who holds what somebody waits for, as far as the waiting person may read it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from fleet_contracts.reasons import Holder
from fleet_hub.scheduling.snapshot import Allocation


MOST = 10
"""Holders told in one explanation: more would not help anybody."""


def told(
    allocations: Iterable[Allocation], *, viewer: str, names_visible: bool
) -> tuple[Holder, ...]:
    """Return the holders, the first to end first; those without an end come last."""
    ordered = sorted(allocations, key=_by_end)
    return tuple(
        _holder(allocation, is_named=names_visible or allocation.owner == viewer)
        for allocation in ordered[:MOST]
    )


def instant(seconds: float) -> datetime:
    """Return the aware datetime of *seconds* since the epoch."""
    return datetime.fromtimestamp(seconds, UTC)


def _by_end(allocation: Allocation) -> tuple[bool, float, float, str]:
    ends_by = allocation.ends_by
    return ends_by is None, ends_by or 0.0, allocation.since, allocation.workload


def _holder(allocation: Allocation, *, is_named: bool) -> Holder:
    return Holder(
        workload=allocation.workload,
        owner=allocation.owner if is_named else None,
        title=allocation.title if is_named else None,
        since=instant(allocation.since),
        ends_by=None if allocation.ends_by is None else instant(allocation.ends_by),
    )
