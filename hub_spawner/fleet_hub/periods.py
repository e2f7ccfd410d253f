"""Moments as people write them: ``2026-11-01``, ``2026-11-01T12:00``, ``7d`` ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fleet_contracts.amounts import AmountError, parse_seconds


class PeriodError(ValueError):
    """A text that names no moment; the message says how to write one."""


def moment(text: str, now: datetime) -> datetime:
    """Return the moment that *text* names, in UTC where it names no zone.

    Raises:
        PeriodError: it names none.
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return _ago(text, now)
    if found.tzinfo is None:
        return found.replace(tzinfo=UTC)
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise _unknown(text) from None


def month(text: str) -> tuple[datetime, datetime]:
    """Return when the month that *text* names, such as ``2026-11``, begins and ends.

    Raises:
        PeriodError: it names none.
    """
    try:
        begin = datetime.strptime(text.strip(), "%Y-%m").replace(tzinfo=UTC)
        return begin, (begin + timedelta(days=31)).replace(day=1)
    except (ValueError, OverflowError):
        raise PeriodError(f"{text[:40]!r} is no month: write 2026-11") from None


def month_before(until: datetime) -> datetime:
    """Return when the month begins that *until* ends, or lies in.

    A period ends before the moment that is named: the first of December ends November.
    """
    last = until - timedelta(microseconds=1)
    return last.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _ago(text: str, now: datetime) -> datetime:
    if text.strip()[-1:].isdecimal():
        # Without a unit it would be seconds, and is rather a year.
        raise _unknown(text)
    try:
        return now - timedelta(seconds=parse_seconds(text))
    except (AmountError, OverflowError):
        raise _unknown(text) from None


def _unknown(text: str) -> PeriodError:
    return PeriodError(
        f"{text[:40]!r}: write 2026-11-01, 2026-11-01T12:00 or 7d for a week ago"
    )
