"""How long each allocation was held: what accounts are made of.

A span is written in the same change that releases its allocation, so that a kill can
neither lose one nor count it twice.  Instants are whole microseconds since the epoch:
sums of them are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from fleet_hub.controller.records import Workload


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What was held, by whom and as what: spans of equal ones add up."""

    user_id: int
    user: str
    """The name that the user had when it was released."""
    class_name: str
    """The class that was asked for, whatever else it kept from others."""
    devices: int
    cpu_milli: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One allocation, from ``placed`` to its release."""

    allocation: str
    held: Held
    profile: str
    machine: str
    began: int
    ended: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Everything that was held alike within a period."""

    held: Held
    allocations: int
    microseconds: int


def span_of(record: Workload, now: datetime) -> Span | None:
    """Return how long *record* has held its allocation until *now*; None: it has none.

    A clock that went back makes it empty, never negative.
    """
    assignment = record.assignment
    if assignment is None:
        return None
    resources, began = assignment.resources, micros(assignment.since)
    return Span(
        allocation=assignment.allocation,
        held=Held(
            user_id=record.principal.user_id,
            user=record.principal.name,
            class_name=assignment.class_name,
            devices=max(assignment.devices_asked, len(resources.devices)),
            cpu_milli=resources.cpu_milli,
            memory_bytes=resources.memory_bytes,
        ),
        profile=record.choice.profile,
        machine=assignment.machine,
        began=began,
        ended=max(began, micros(now)),
    )


def within(span: Span, since: int, until: int) -> int:
    """Return how many microseconds of *span* lie within a period."""
    return max(0, min(span.ended, until) - max(span.began, since))


def touches(span: Span, since: int, until: int) -> bool:
    """Return whether *span* counts as one of a period's allocations."""
    return span.began < until and (span.ended > since or span.began >= since)


def micros(moment: datetime) -> int:
    """Return *moment* as whole microseconds since the epoch."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(microseconds: int) -> datetime:
    """Return the moment of *microseconds* since the epoch."""
    return _EPOCH + microseconds * _MICROSECOND
