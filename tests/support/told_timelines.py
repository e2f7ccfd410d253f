"""Timelines as their readers get them, some seconds after their beginning."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from fleet_contracts.allocations import PHASE, State
from fleet_contracts.timeline import Timeline, TimelineEvent, TimelineKind


START = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
KIND = {
    State.REQUESTED: TimelineKind.ASKED,
    State.QUEUED: TimelineKind.WAITING,
    State.UNKNOWN: TimelineKind.SILENT,
}


def an_event(seq: int, state: State, at: float, **more: Any) -> TimelineEvent:
    """Return an entry *at* so many seconds after the start."""
    kind = KIND.get(state) or TimelineKind(state.value)
    values: dict[str, Any] = {"generation": 1, "kind": kind} | more
    return TimelineEvent(
        seq=seq, at=START + timedelta(seconds=at), state=state, **values
    )


def a_timeline(*events: TimelineEvent, now: float, **more: Any) -> Timeline:
    """Return a document as of *now* seconds after the start."""
    state = events[-1].state if events else State.REQUESTED
    values: dict[str, Any] = {
        "workload": "w1",
        "generation": 1,
        "user": "ada",
        "server": "",
        "headline": "A sentence.",
    }
    return Timeline(
        as_of=START + timedelta(seconds=now),
        state=state,
        phase=PHASE[state],
        events=events,
        **(values | more),
    )
