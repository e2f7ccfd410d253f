"""How long a workload may run and rest: as it was placed, or as the catalog says now."""

from __future__ import annotations

from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.time_limits import NO_LIMITS, TimeLimit, TimeLimits, in_force
from fleet_hub.controller.core import Core
from fleet_hub.controller.model import WAITING
from fleet_hub.controller.records import Workload


def time_limits_of(core: Core, record: Workload) -> TimeLimits:
    """Return the limits that *record* runs under, or would if it started now."""
    offered, assignment = _offered(core, record), record.assignment
    if assignment is None:
        return offered if record.state in WAITING else NO_LIMITS
    return TimeLimits(
        limit=in_force(assignment.limit_seconds, offered.limit),
        idle_limit=in_force(assignment.idle_limit_seconds, offered.idle_limit),
    )


def told_whose(core: Core, record: Workload, over: Explanation) -> Explanation:
    """Return *over* with how long the limit that is over was, and which entry set it."""
    limits = time_limits_of(core, record)
    kinds = {Reason.TIME_LIMIT: limits.limit, Reason.IDLE_LIMIT: limits.idle_limit}
    limit = kinds.get(over.reason)
    if limit is None:
        return over
    return over.model_copy(
        update={
            "subject": _entry(record, limit),
            "requested": round(limit.seconds),
            "unit": "seconds",
        }
    )


def _entry(record: Workload, limit: TimeLimit) -> str | None:
    if limit.set_by is None:
        return None
    assignment = record.assignment
    names = {
        "class": assignment.class_name if assignment else record.choice.class_name,
        "profile": record.choice.profile,
    }
    return f"{limit.set_by.value} {names[limit.set_by.value]}"


def _offered(core: Core, record: Workload) -> TimeLimits:
    """Return what the catalog of today says of the choice of *record*."""
    catalog = core.catalogs.current()
    profile = catalog.profile_named(record.choice.profile)
    if profile is None:
        return NO_LIMITS
    chosen = catalog.class_named(record.choice.class_name or profile.classes[0])
    return NO_LIMITS if chosen is None else catalog.time_limits(profile, chosen)
