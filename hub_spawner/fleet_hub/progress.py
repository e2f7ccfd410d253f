"""The timeline as JupyterHub's event stream carries it.

Each page replays the stream from the start, so it is read from the controller and
nothing is remembered here.  ``fleet`` holds the entry for our own page; ``message``
and ``progress`` serve any other reader of the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from fleet_contracts.allocations import State
from fleet_contracts.timeline import Timeline, TimelineEvent, TimelineKind
from fleet_contracts.workloads import ServerKey
from fleet_hub.controller_client import ControllerClient
from fleet_hub.errors import ControllerError


ALIVE_SECONDS: Final = 10.0
"""A browser cannot see the Hub's own keep-alive, and proxies keep dead streams open:
an event at least this often lets a page tell silence from waiting."""
AWAY_SECONDS: Final = 1.0
"""How often a controller that is away is tried for the pages."""

_PERCENT: Final[dict[State, int]] = {
    State.REQUESTED: 5,
    State.QUEUED: 10,
    State.PLACED: 25,
    State.PREPARING: 30,
    State.STARTING: 85,
    State.READY: 95,
}
_PREPARED: Final = 80


def percent(event: TimelineEvent) -> int | None:
    """Return how far along *event* is, for a plain progress bar."""
    base = _PERCENT.get(event.state)
    step = event.progress
    if event.state is State.PREPARING and base is not None and step and step.total:
        done = min(step.done, step.total) / step.total
        return base + round((_PREPARED - base) * done)
    return base


def step_message(event: TimelineEvent) -> str:
    """Return *event* as a line of the plain event log."""
    words = _WORDS.get(event.kind, event.kind.value)
    if event.kind is TimelineKind.PLACED and event.machine:
        words = f"Placed on {event.machine}"
    step = event.progress
    if step is None:
        return words
    name = step.step.replace("_", " ")
    if step.total:
        return f"{words}: {name}, {step.done} of {step.total} {step.unit}"
    return f"{words}: {name}"


_WORDS: Final[dict[TimelineKind, str]] = {
    TimelineKind.ASKED: "Asked",
    TimelineKind.WAITING: "Waiting in line",
    TimelineKind.PARKED: "Your place is kept",
    TimelineKind.PLACED: "Placed",
    TimelineKind.PREPARING: "Preparing the environment",
    TimelineKind.PROGRESS: "Preparing",
    TimelineKind.STARTING: "Starting the server",
    TimelineKind.READY: "Ready",
    TimelineKind.STOPPING: "Stopping",
    TimelineKind.STOPPED: "Stopped",
    TimelineKind.FAILED: "Failed",
    TimelineKind.REFUSED: "Refused",
    TimelineKind.SILENT: "The machine is not answering",
    TimelineKind.RETURNED: "The machine is back",
    TimelineKind.NOTE: "Note",
}


def stream_event(event: TimelineEvent, timeline: Timeline) -> dict[str, Any]:
    """Return one entry as an event of the stream."""
    answer: dict[str, Any] = {
        "message": step_message(event),
        "fleet": {
            "event": event.model_dump(mode="json", exclude_none=True),
            "timeline": _heading(timeline),
        },
    }
    done = percent(event)
    if done is not None:
        answer["progress"] = done
    return answer


def alive_event(timeline: Timeline | None) -> dict[str, Any]:
    """Return an event that only says: the stream lives."""
    return {"fleet": {"timeline": _heading(timeline) if timeline else None}}


def _heading(timeline: Timeline) -> dict[str, Any]:
    return timeline.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude={"events"}
    )


async def follow(
    client: ControllerClient, key: ServerKey, generation: int
) -> AsyncIterator[dict[str, Any]]:
    """Yield the entries of *generation*, old and new, and a sign of life in between.

    Never raises; ends only when its reader closes it.
    """
    after = 0
    while True:
        try:
            timeline = await client.timeline(
                key, after=after, wait_seconds=ALIVE_SECONDS
            )
        except ControllerError:
            yield alive_event(None)
            # The start itself watches over how long the controller may be away.
            await asyncio.sleep(AWAY_SECONDS)
            continue
        told = False
        for event in timeline.events:
            after = max(after, event.seq)
            if event.generation >= generation:
                told = True
                yield stream_event(event, timeline)
        if not told:
            yield alive_event(timeline)
