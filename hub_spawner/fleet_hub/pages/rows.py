"""The five phases of a timeline as rows, for a page that works without a script.

``timeline.js`` does the same in the browser, where rows move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fleet_contracts.allocations import ENDED, PHASE, Phase, State
from fleet_contracts.timeline import Timeline, TimelineEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One phase: *status* is done, now, todo or failed."""

    phase: Phase
    label: str
    status: str
    seconds: int | None = None
    detail: str = ""

    @property
    def glyph(self) -> str:
        """The sign that goes with the word, so that colour is never alone."""
        return GLYPHS[self.status][0]

    @property
    def word(self) -> str:
        """What the sign says to whoever cannot see it."""
        return GLYPHS[self.status][1]

    @property
    def duration(self) -> str:
        """How long it took, as people say it."""
        return "" if self.seconds is None else in_words(self.seconds)


GLYPHS: Final = {
    "done": ("✓", "done"),
    "now": ("●", "now"),
    "todo": ("○", "not yet"),
    "failed": ("✕", "ended here"),
}
LABELS: Final = {
    Phase.ASKED: "Asked",
    Phase.WAITING: "Waiting in line",
    Phase.PLACED: "Placed on a machine",
    Phase.STARTING: "Starting the server",
    Phase.READY: "Ready",
}


def in_words(seconds: int) -> str:
    """Return a duration with its two largest units."""
    hours, rest = divmod(max(0, seconds), 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {left} s"
    return f"{left} s"


def rows_of(timeline: Timeline | None) -> tuple[Row, ...]:
    """Return the five phases of the current generation, in their order."""
    if timeline is None:
        return tuple(_row(phase, "now" if i == 0 else "todo") for i, phase in _PHASES)
    events = [e for e in timeline.events if e.generation == timeline.generation]
    reached = _reached(events)
    spent = _spent(events, timeline)
    over = timeline.state in ENDED
    latest = max((_ORDER[phase] for phase in reached), default=0)
    return tuple(
        _row(
            phase,
            _status(index, latest, phase in reached, over=over),
            seconds=spent.get(phase),
            timeline=timeline,
        )
        for index, phase in _PHASES
    )


_PHASES: Final = tuple(enumerate(Phase))
_ORDER: Final = {phase: index for index, phase in _PHASES}


def _row(
    phase: Phase,
    status: str,
    *,
    seconds: int | None = None,
    timeline: Timeline | None = None,
) -> Row:
    label = LABELS[phase]
    if timeline is not None:
        if phase is Phase.ASKED and timeline.profile_title:
            label = f"Asked for {timeline.profile_title}"
        if phase is Phase.PLACED and timeline.machine and status != "todo":
            label = f"Placed on {timeline.machine}"
    shown = seconds if status in {"done", "now", "failed"} else None
    return Row(phase=phase, label=label, status=status, seconds=shown)


def _reached(events: list[TimelineEvent]) -> set[Phase]:
    """Return the phases that were entered; an end belongs to none of them."""
    return {
        PHASE[event.state]
        for event in events
        if event.state not in ENDED or event.state is State.REFUSED
    }


def _spent(events: list[TimelineEvent], timeline: Timeline) -> dict[Phase, int]:
    """Return the whole seconds spent in each phase, repeated visits added up."""
    ends = [event.at for event in events[1:]] + [timeline.as_of]
    spent: dict[Phase, float] = {}
    for event, end in zip(events, ends, strict=False):
        if event.state in ENDED or event.state is State.READY:
            continue
        length = max(0.0, (end - event.at).total_seconds())
        phase = PHASE[event.state]
        spent[phase] = spent.get(phase, 0.0) + length
    return {phase: round(seconds) for phase, seconds in spent.items()}


def _status(index: int, latest: int, entered: bool, *, over: bool) -> str:  # noqa: FBT001 - reads as a table
    if index == latest:
        if over:
            return "failed"
        return "done" if index == _ORDER[Phase.READY] else "now"
    if index < latest:
        return "done"
    return "todo" if not entered else "done"
