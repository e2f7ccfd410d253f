"""What of the controller's answer reaches a browser: named fields of bounded size.

The controller is trusted, but the answer passes through a proxy and is shown in the
owner's browser.  So only fields that are named here go on, each of the type and size
that is stated here; whatever else arrives is dropped.  Plain functions instead of
models, because a notebook server should not pay for importing a model library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any


MAX_EVENTS = 500
MAX_HOLDERS = 20
MAX_COUNT = 2**53 - 1
"""The largest integer that survives a browser's arithmetic."""

Cleaner = Callable[[Any], Any]

_SLUG = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_INSTANT = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})\Z"
)


class NotUnderstoodError(ValueError):
    """A value that has not the type that its field must have."""


def read_timeline(body: bytes) -> dict[str, Any]:
    """Return the timeline in *body*, reduced to what is known to be safe to show.

    Raises:
        NotUnderstoodError: it is no timeline, or a field that must be there is not.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotUnderstoodError("the answer is no JSON document") from error
    cleaned: dict[str, Any] = _TIMELINE(answer)
    return {**cleaned, "truncated": bool(cleaned["truncated"])}


def merge(known: Mapping[str, Any] | None, newer: Mapping[str, Any]) -> dict[str, Any]:
    """Return *newer* with the older events of *known* before its own.

    *newer* may hold only the events after the last one that was known.
    """
    if known is None or known["workload"] != newer["workload"]:
        return dict(newer)
    events = {event["seq"]: event for event in known["events"]}
    events.update({event["seq"]: event for event in newer["events"]})
    ordered = [events[seq] for seq in sorted(events)]
    return {
        **newer,
        "events": ordered[-MAX_EVENTS:],
        "truncated": newer["truncated"] or len(ordered) > MAX_EVENTS,
    }


def last_seq(timeline: Mapping[str, Any] | None) -> int:
    """Return the number of the last event of *timeline*, 0 when there is none."""
    if timeline is None or not timeline["events"]:
        return 0
    return int(timeline["events"][-1]["seq"])


def _text(limit: int) -> Cleaner:
    def clean(value: Any) -> str:
        if not isinstance(value, str):
            raise NotUnderstoodError("a text was expected")
        return value[:limit]

    return clean


def _matching(pattern: re.Pattern[str]) -> Cleaner:
    def clean(value: Any) -> str:
        if not isinstance(value, str) or not pattern.match(value):
            raise NotUnderstoodError("a value of another form was expected")
        return value

    return clean


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotUnderstoodError("an integer was expected")
    if not 0 <= value <= MAX_COUNT:
        raise NotUnderstoodError("the integer is out of range")
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotUnderstoodError("a number was expected")
    if not 0 <= value <= MAX_COUNT:
        raise NotUnderstoodError("the number is out of range")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise NotUnderstoodError("true or false was expected")
    return value


def _list(item: Cleaner, limit: int) -> Cleaner:
    """Keep the last *limit* items that can be understood."""

    def clean(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise NotUnderstoodError("a list was expected")
        return [
            cleaned
            for candidate in value[-limit:]
            if (cleaned := _optional(item, candidate)) is not None
        ]

    return clean


def _optional(cleaner: Cleaner, value: Any) -> Any:
    """Return the cleaned *value*, or None where it is absent or not understood."""
    if value is None:
        return None
    try:
        return cleaner(value)
    except NotUnderstoodError:
        return None


def _record(
    required: Mapping[str, Cleaner], optional: Mapping[str, Cleaner]
) -> Cleaner:
    def clean(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise NotUnderstoodError("an object was expected")
        cleaned = {name: clean(value.get(name)) for name, clean in required.items()}
        cleaned.update(
            {
                name: _optional(clean, value.get(name))
                for name, clean in optional.items()
            }
        )
        return cleaned

    return clean


_slug, _instant = _matching(_SLUG), _matching(_INSTANT)
_name, _sentence = _text(255), _text(1000)

_LIKELY = _record({"early": _instant, "late": _instant, "samples": _count}, {})
_HOLDER = _record(
    {"workload": _name},
    {
        "owner": _name,
        "own": _truth,
        "promised": _truth,
        "title": _name,
        "amount": _count,
        "since": _instant,
        "ends_by": _instant,
        "idle_since": _instant,
        "idle_ends": _instant,
        "likely_end": _LIKELY,
        "asked_at": _instant,
        "handle": _name,
    },
)
_EXPLANATION = _record(
    {"reason": _slug},
    {
        "machine": _name,
        "subject": _name,
        "requested": _count,
        "capacity": _count,
        "free": _count,
        "unit": _text(32),
        "position": _count,
        "holders": _list(_HOLDER, MAX_HOLDERS),
        "detail": _sentence,
    },
)
_PROGRESS = _record(
    {"step": _slug}, {"done": _count, "total": _count, "unit": _text(32)}
)
_EVENT = _record(
    {
        "seq": _count,
        "generation": _count,
        "at": _instant,
        "kind": _slug,
        "state": _slug,
    },
    {
        "actor": _slug,
        "machine": _name,
        "explanation": _EXPLANATION,
        "progress": _PROGRESS,
    },
)
_TIME_LIMIT = _record({"seconds": _seconds}, {"set_by": _slug})
_TIME_LIMITS = _record({}, {"limit": _TIME_LIMIT, "idle_limit": _TIME_LIMIT})
_LIMITS = _record(
    {},
    {
        "starts_by": _instant,
        "likely": _LIKELY,
        "longer_than_usual": _truth,
        "cpu_milli": _count,
        "memory_bytes": _count,
        "devices": _count,
        "metal_reserved": _truth,
        "ends_at": _instant,
        "time_limits": _TIME_LIMITS,
        "idle_ends": _instant,
    },
)
_TIMELINE = _record(
    {
        "as_of": _instant,
        "workload": _name,
        "generation": _count,
        "user": _name,
        "server": _name,
        "state": _slug,
        "phase": _slug,
        "headline": _sentence,
        "events": _list(_EVENT, MAX_EVENTS),
    },
    {
        "schema": _text(64),
        "profile": _name,
        "profile_title": _name,
        "profile_version": _name,
        "class": _name,
        "machine": _name,
        "position": _count,
        "parked": _truth,
        "explanation": _EXPLANATION,
        "limits": _LIMITS,
        "truncated": _truth,
    },
)
