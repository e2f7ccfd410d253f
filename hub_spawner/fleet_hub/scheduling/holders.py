"""Who holds what somebody waits for, as far as the waiting person may read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from pydantic import AwareDatetime

from fleet_contracts.reasons import Explanation, Holder
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.snapshot import Allocation, Idle, MachineState


MOST = 10
"""Holders told in one explanation: more would not help anybody."""
MOST_ASKERS = 5
"""Who is asked by so many for what they hold knows it: the next one would only nag."""


class KnownHolder(Holder):
    """A holder of which more is known than is told: what is written has only the rest."""

    class_name: str
    since: AwareDatetime


def told(
    allocations: Iterable[Allocation],
    amount_of: Callable[[Allocation], int],
    *,
    viewer: Principal,
    names_visible: bool,
    rested: Mapping[str, float] = MappingProxyType({}),
    idle: Mapping[str, Idle] = MappingProxyType({}),
) -> tuple[Holder, ...]:
    """Return the holders, the first to end first; those without an end come last.

    *rested*: since when devices of theirs were seen at rest.  *idle*: whom an idle limit
    ends if they go on to compute nothing.
    """
    ordered = sorted(allocations, key=_by_end)
    return tuple(
        _holder(
            allocation,
            amount_of(allocation),
            is_named=names_visible,
            is_own=bool(viewer.name) and allocation.owner == viewer.name,
            asked_at=dict(allocation.asked).get(viewer.user_id),
            rests_since=_rests_since(allocation, rested),
            idle=idle.get(allocation.workload),
        )
        for allocation in ordered[:MOST]
    )


def by_its_owner(
    found: Explanation, machine: MachineState, *, names_visible: bool
) -> Explanation:
    """Return *found*, which is the word of the owner of *machine*, with whose it is."""
    owner = machine.owner if names_visible else None
    return found.model_copy(
        update={"machine": machine.name, "subject": owner or found.subject}
    )


def instant(seconds: float) -> datetime:
    """Return the aware datetime of *seconds* since the epoch."""
    return datetime.fromtimestamp(seconds, UTC)


def _by_end(allocation: Allocation) -> tuple[bool, float, float, str]:
    ends_by = allocation.ends_by
    return ends_by is None, ends_by or 0.0, allocation.since, allocation.workload


def _rests_since(allocation: Allocation, rested: Mapping[str, float]) -> float | None:
    """Return since when all devices of *allocation* are at rest; None: not all are."""
    if not rested:
        return None
    since = [rested.get(uuid) for uuid in allocation.resources.devices]
    known = [moment for moment in since if moment is not None]
    # What it was given at rest is its own rest only from then on.
    whole = bool(since) and len(known) == len(since)
    return max(*known, allocation.since) if whole else None


def _holder(
    allocation: Allocation,
    amount: int,
    *,
    is_named: bool,
    is_own: bool,
    asked_at: float | None,
    rests_since: float | None,
    idle: Idle | None,
) -> Holder:
    is_named = is_named or is_own
    handle = allocation.handle
    is_askable = not is_own and asked_at is None and len(allocation.asked) < MOST_ASKERS
    return KnownHolder(
        class_name=allocation.class_name,
        workload=allocation.workload if is_named else handle or allocation.workload,
        owner=allocation.owner if is_named else None,
        own=is_own,
        title=allocation.title if is_named else None,
        amount=amount,
        since=instant(allocation.since),
        ends_by=None if allocation.ends_by is None else instant(allocation.ends_by),
        idle_since=_moment(rests_since if idle is None else idle.since),
        idle_ends=None if idle is None else instant(idle.ends),
        handle=handle if handle and is_askable else None,
        asked_at=_moment(asked_at),
    )


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else instant(seconds)
