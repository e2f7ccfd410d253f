"""At which hours does the owner lend the machine?  Pure, but for the local time zone.

``mon-fri 18:00-08:00, sat-sun 00:00-24:00`` and ``daily 20:00-07:30``: days by their
first three letters, and times of the machine's own clock.  A span that ends before it
begins goes on past midnight.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final


_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SPAN: Final = re.compile(
    r"(?P<first>daily|[a-z]{3})(?:-(?P<last>[a-z]{3}))?"
    r"\s+(?P<begin>\d{1,2}:\d{2})\s*-\s*(?P<end>\d{1,2}:\d{2})"
)
_WEEK: Final = 7
_MINUTES_A_DAY: Final = 24 * 60


class HoursError(ValueError):
    """A text that names no hours; the message says how to write them."""


@dataclass(frozen=True, slots=True)
class Span:
    """One span on some days of the week, in minutes from midnight."""

    days: frozenset[int]
    begin: int
    end: int
    """More than a day's minutes when it goes on past midnight."""


@dataclass(frozen=True, slots=True)
class Hours:
    """When the machine is lent."""

    text: str
    spans: tuple[Span, ...]

    def at(self, moment: datetime) -> tuple[bool, datetime | None]:
        """Return whether it is lent at *moment*, and when that changes.

        None: it never does.  *moment* is of any time zone; the answer is of this
        machine's.
        """
        local = moment.astimezone()
        lent = self._lent(local.date())
        begins = [begin for begin, _ in lent if begin > local]
        current = [end for begin, end in lent if begin <= local < end]
        if not current:
            return False, min(begins, default=None)
        end = max(current)
        # Spans that touch are one, as of Saturday and Sunday.
        while touching := [more for begin, more in lent if begin <= end < more]:
            end = max(touching)
        return True, end if end < max(other for _, other in lent) else None

    def _lent(self, day: date) -> list[tuple[datetime, datetime]]:
        """Return the spans from yesterday until more than a week from now."""
        days = [day + timedelta(days=offset) for offset in range(-1, _WEEK + 2)]
        return [
            (_moment(on, span.begin), _moment(on, span.end))
            for on in days
            for span in self.spans
            if on.weekday() in span.days
        ]


def parse_hours(text: str) -> Hours:
    """Return the hours that *text* names.

    Raises:
        HoursError: it names none.
    """
    spans = tuple(_span(part) for part in text.lower().split(","))
    return Hours(" ".join(text.split()), spans)


def _span(part: str) -> Span:
    match = _SPAN.fullmatch(part.strip())
    if match is None:
        raise HoursError(
            f"{part.strip()!r} names no hours: write mon-fri 18:00-08:00, or daily "
            "20:00-07:30, with commas between them"
        )
    begin, end = _minutes(match["begin"]), _minutes(match["end"])
    if begin in {_MINUTES_A_DAY, end}:
        raise HoursError(f"{part.strip()!r} is no span of time")
    return Span(
        _days(match["first"], match["last"]),
        begin,
        end if end > begin else end + _MINUTES_A_DAY,
    )


def _days(first: str, last: str | None) -> frozenset[int]:
    if first == "daily" and last is None:
        return frozenset(range(_WEEK))
    try:
        begin = _DAYS.index(first)
        end = begin if last is None else _DAYS.index(last)
    except ValueError:
        raise HoursError(
            f"{first}{f'-{last}' if last else ''} names no days: write "
            f"{', '.join(_DAYS)} or daily"
        ) from None
    count = (end - begin) % _WEEK + 1
    return frozenset((begin + each) % _WEEK for each in range(count))


def _minutes(text: str) -> int:
    hours, minutes = (int(part) for part in text.split(":"))
    if minutes >= 60 or hours * 60 + minutes > _MINUTES_A_DAY:  # noqa: PLR2004 - an hour
        raise HoursError(f"{text} is no time of a day")
    return hours * 60 + minutes


def _moment(day: date, minutes: int) -> datetime:
    """Return a time of this machine's clock, whatever its zone does on that day."""
    more, rest = divmod(minutes, _MINUTES_A_DAY)
    at = time(rest // 60, rest % 60)
    return datetime.combine(day + timedelta(days=more), at).astimezone()
