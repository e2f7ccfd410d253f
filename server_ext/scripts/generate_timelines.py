"""Writes how timelines must be drawn: ``tests/data/timelines.json``.

Pages without a script and notebooks draw with ``fleet_contracts.steps``, a browser with
``src/timeline/view.ts``.  The front end's tests read this file and must find the same.
"""
# ruff: noqa: INP001 - a script beside the front end, not a package

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fleet_contracts.allocations import PHASE, State
from fleet_contracts.causes import Cause
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.steps import shown
from fleet_contracts.telling import ends_after, event_words, label, spent, status_word
from fleet_contracts.time_limits import SetBy, TimeLimit, TimeLimits
from fleet_contracts.timeline import (
    Limits,
    Progress,
    Timeline,
    TimelineEvent,
    TimelineKind,
)


TARGET = Path(__file__).parent.parent / "tests" / "data" / "timelines.json"

_NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
_BUSY = Explanation(reason=Reason.METAL_BUSY, machine="mac-07")
_KEEP = Explanation(reason=Reason.KEEP_CLASS, machine="mac-07", subject="CPU")
_NEVER = Explanation(reason=Reason.ACCELERATOR_MISMATCH, machine="mac-07")
_BROKEN = Explanation(
    reason=Reason.PROMISE_BROKEN, subject=Cause.PUT_FIRST, machine="mac-07"
)
_METAL = Explanation(reason=Reason.METAL_RESERVED)
_WHY = {
    "waiting": _BUSY,
    "note": _KEEP,
    "refused": _NEVER,
    "broken": _BROKEN,
    "metal": _METAL,
}
_NOTES = {"broken", "metal"}
_ADMITTED = [
    *((0, "requested", "asked"), (1, "queued", "waiting"), (161, "placed", "placed")),
    *((165, "preparing", "preparing"), (180, "starting", "starting")),
    (192, "ready", "ready"),
]
_STORIES: dict[str, list[tuple[float, str, str]]] = {
    "nothing": [],
    "asked": _ADMITTED[:1],
    "waiting": _ADMITTED[:2],
    "parked": [*_ADMITTED[:2], (60, "queued", "parked")],
    "placed at once": [_ADMITTED[0], (2, "placed", "placed")],
    "handed back": [*_ADMITTED[:3], (170, "queued", "waiting")],
    "preparing": [*_ADMITTED[:4], (170, "preparing", "progress")],
    "ready": _ADMITTED,
    "silent while preparing": [*_ADMITTED[:4], (200, "unknown", "silent")],
    "silent and back": [
        *_ADMITTED,
        (900, "unknown", "silent"),
        (990, "ready", "returned"),
    ],
    "stopped": [*_ADMITTED, (900, "stopping", "stopping"), (905, "stopped", "stopped")],
    "left the line": [*_ADMITTED[:2], (30, "stopped", "stopped")],
    "refused": [_ADMITTED[0], (0, "refused", "refused")],
    "refused with ways out": [
        *(_ADMITTED[0], (0, "requested", "note"), (0, "requested", "note")),
        (0, "refused", "refused"),
    ],
    "put off while waiting": [*_ADMITTED[:2], (60, "queued", "broken")],
    "put off, and then ready": [
        *(*_ADMITTED[:2], (60, "queued", "broken"), *_ADMITTED[2:3]),
        *((161, "placed", "metal"), *_ADMITTED[3:], (400, "ready", "broken")),
    ],
    "put off again and again": [
        *_ADMITTED[:2],
        *((10.0 * number, "queued", "broken") for number in range(1, 9)),
    ],
    "failed": [*_ADMITTED[:4], (175, "failed", "failed")],
    "a clock behind": [
        _ADMITTED[0],
        (10, "placed", "placed"),
        (4, "starting", "starting"),
    ],
}
_BY_CLASS = TimeLimit(seconds=7_200, set_by=SetBy.CLASS)
_BY_PROFILE = TimeLimit(seconds=1_800, set_by=SetBy.PROFILE)
_TIME_LIMITS = [
    TimeLimits(limit=limit, idle_limit=idle)
    for limit, idle in (
        (_BY_CLASS, None),
        (None, _BY_PROFILE),
        (_BY_CLASS, _BY_PROFILE),
        (_BY_PROFILE, _BY_CLASS),
        (_BY_CLASS, _BY_CLASS),
        (_BY_PROFILE, _BY_PROFILE),
        (_BY_PROFILE, TimeLimit(seconds=90)),
        (TimeLimit(seconds=86_400), TimeLimit(seconds=172_800.5)),
        (TimeLimit(seconds=93_600), None),
        (TimeLimit(seconds=45), None),
    )
]


def generate() -> str:
    """Return the whole document."""
    rows = [_row(name, story) for name, story in _STORIES.items()]
    for limits in _TIME_LIMITS:
        name = f"waiting, {ends_after(limits)}"
        rows.append(_row(name, _STORIES["waiting"], limits=Limits(time_limits=limits)))
    rows.append(_row("ready, older steps gone", _ADMITTED[3:], truncated=True))
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def _row(
    name: str, story: list[tuple[float, str, str]], **facts: Any
) -> dict[str, Any]:
    timeline = _timeline(story, **facts)
    account = shown(timeline)
    return {
        "name": name,
        "timeline": timeline.model_dump(mode="json", by_alias=True, exclude_none=True),
        "steps": [
            {
                "phase": step.phase,
                "status": step.status,
                "word": status_word(step.status),
                "label": label(step, timeline),
                "seconds": step.seconds,
                "reason": step.explanation and step.explanation.reason,
                "notes": [note.seq for note in step.notes],
                "instead": [way.reason for way in step.instead],
            }
            for step in account.steps
        ],
        "spent": spent(account),
        "ends": ends_after(timeline.limits.time_limits),
        "events": [event_words(event) for event in timeline.events],
        "since": [event.seq for event in account.since],
    }


def _timeline(story: list[tuple[float, str, str]], **facts: Any) -> Timeline:
    state = State(story[-1][1] if story else "requested")
    last = max((at for at, _, _ in story), default=0)
    return Timeline(
        as_of=_NOON + timedelta(seconds=last + 7),
        workload="w1",
        generation=1,
        user="ada",
        server="gpu",
        profile_title="GPU large",
        machine="mac-07"
        if ("placed", "placed") in ((s, k) for _, s, k in story)
        else None,
        state=state,
        phase=PHASE[state],
        headline="",
        events=tuple(_event(seq, *entry) for seq, entry in enumerate(story, start=1)),
        **facts,
    )


def _event(seq: int, at: float, state: str, kind: str) -> TimelineEvent:
    progress = Progress(step="install_packages", done=3, total=9, unit="packages")
    return TimelineEvent(
        seq=seq,
        generation=1,
        at=_NOON + timedelta(seconds=at),
        kind=TimelineKind("note" if kind in _NOTES else kind),
        state=State(state),
        machine="mac-07" if kind == "silent" else None,
        explanation=_WHY.get(kind),
        progress=progress if kind == "progress" else None,
    )


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(generate(), encoding="utf-8")
    sys.stdout.write(f"{TARGET.name} written\n")
