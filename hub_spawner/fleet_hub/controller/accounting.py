"""Who has held how much in a period: what is released and what still runs, added up."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

from fleet_hub.accounts import Account, UsageDocument
from fleet_hub.controller.core import Core
from fleet_hub.controller.spans import (
    Held,
    Total,
    micros,
    moment_of,
    span_of,
    touches,
    within,
)


_LATEST = 1 << 62


def usage(
    core: Core,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    user: str | None = None,
) -> UsageDocument:
    """Return what was held from *since* to *until*, or to now if that is earlier.

    With *user*, only what whoever goes by that name held.
    """
    now = core.clock.now()
    begin = -_LATEST if since is None else micros(since)
    end = micros(now) if until is None else min(micros(until), micros(now))
    totals: dict[Held, list[int]] = {}
    for total in (*core.store.totals(begin, end), *_open(core, now, begin, end)):
        if user is None or _is_of(core, total.held, user):
            entry = totals.setdefault(total.held, [0, 0])
            entry[0] += total.allocations
            entry[1] += total.microseconds
    return UsageDocument(
        as_of=now,
        since=since,
        until=moment_of(max(begin, end)) if since is not None else moment_of(end),
        accounts=tuple(_accounts(totals)),
    )


def _is_of(core: Core, held: Held, user: str) -> bool:
    """Return whether whoever goes by the name *user* held that.

    Somebody else may have had the name before: then their accounts are not shown.
    """
    ids = core.model.ids_of_name(user)
    return held.user == user and (not ids or held.user_id in ids)


def _open(core: Core, now: datetime, begin: int, end: int) -> list[Total]:
    """Return what is held now: it counts until the end of the period, or until now."""
    spans = (span_of(record, now) for record in core.model.workloads.values())
    return [
        Total(held=span.held, allocations=1, microseconds=within(span, begin, end))
        for span in spans
        if span is not None and touches(span, begin, end)
    ]


def _accounts(totals: dict[Held, list[int]]) -> list[Account]:
    """Return one account for each user and class, by name."""
    sums: dict[tuple[str, int, str], list[int]] = {}
    for held, (allocations, microseconds) in totals.items():
        entry = sums.setdefault((held.user, held.user_id, held.class_name), [0] * 5)
        for place, amount in enumerate(
            (
                allocations,
                microseconds,
                microseconds * held.devices,
                microseconds * held.cpu_milli,
                microseconds * held.memory_bytes,
            )
        ):
            entry[place] += amount
    return [
        Account.model_validate(
            {
                "user": user,
                "user_id": user_id,
                "class": class_name,
                "allocations": entry[0],
                "seconds": _over(entry[1], 10**6),
                "device_seconds": _over(entry[2], 10**6),
                "core_seconds": _over(entry[3], 10**9),
                "memory_gib_seconds": _over(entry[4], 10**6 << 30),
            }
        )
        for (user, user_id, class_name), entry in sorted(sums.items())
    ]


def _over(amount: int, unit: int) -> float:
    """Return *amount* in *unit*, to the microsecond."""
    return float(round(Fraction(amount, unit), 6))
