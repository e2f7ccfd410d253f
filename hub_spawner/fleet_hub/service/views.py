"""What a page shows of a timeline: five phases with their times, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from fleet_contracts.allocations import ENDED, PHASE, Phase, State
from fleet_contracts.sentences import remedy, sentence
from fleet_contracts.timeline import Progress, Timeline, TimelineEvent


class Mark(StrEnum):
    """How a phase stands: a word for people, and with it a glyph."""

    DONE = "done"
    NOW = "now"
    LATER = "to come"
    FAILED = "failed"
    ENDED = "ended"


GLYPHS: Final = {
    Mark.DONE: "✓",
    Mark.NOW: "●",
    Mark.LATER: "○",
    Mark.FAILED: "✕",
    Mark.ENDED: "‖",
}
_ORDER: Final = tuple(Phase)
_FAILED: Final = frozenset({State.FAILED, State.REFUSED})


@dataclass(slots=True, kw_only=True)
class Row:
    """One phase."""

    phase: Phase
    label: str
    mark: Mark = Mark.LATER
    began: datetime | None = None
    seconds: float = 0.0
    """How long it took, or has taken so far."""
    notes: list[str] = field(default_factory=list)
    steps: list[Progress] = field(default_factory=list)
    """What was done in it, latest last."""

    @property
    def told(self) -> list[str]:
        """What the page tells of it: only the step under way has numbers."""
        over = [_step(step) for step in self.steps[:-1]]
        now = self.mark is Mark.NOW
        last = [(_counted if now else _step)(step) for step in self.steps[-1:]]
        return [*self.notes, *over[-4:], *last]

    @property
    def glyph(self) -> str:
        """The sign beside the word."""
        return GLYPHS[self.mark]

    @property
    def duration(self) -> str:
        """How long, as people say it; a dash where nothing is known."""
        return spoken(self.seconds) if self.began is not None else "—"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything that the page of one workload shows."""

    timeline: Timeline
    rows: tuple[Row, ...]
    why: str | None
    remedy: str | None
    waited: str
    total: str
    waited_share: float
    """How much of the time was spent waiting, from 0 to 100."""
    can_leave: bool
    is_over: bool


def view_of(timeline: Timeline) -> View:
    """Return what to show of *timeline*, as of its moment."""
    rows = rows_of(timeline)
    waited = sum(row.seconds for row in rows if row.phase is Phase.WAITING)
    total = sum(row.seconds for row in rows if row.phase is not Phase.READY)
    explanation = timeline.explanation
    return View(
        timeline=timeline,
        rows=rows,
        why=sentence(explanation, now=timeline.as_of) if explanation else None,
        remedy=remedy(explanation.reason) if explanation else None,
        waited=spoken(waited),
        total=spoken(total),
        waited_share=round(100 * waited / total, 1) if total else 0.0,
        can_leave=timeline.phase is not Phase.READY
        and timeline.state not in ENDED | {State.REFUSED},
        is_over=timeline.state in ENDED,
    )


def rows_of(timeline: Timeline) -> tuple[Row, ...]:
    """Return the five phases, in their order."""
    rows = {phase: Row(phase=phase, label=_label(phase, timeline)) for phase in _ORDER}
    events = sorted(timeline.events, key=lambda event: event.seq)
    current = _walk(rows, events)
    if current is None:
        return tuple(rows.values())
    _pass_through(rows, current)
    row = rows[current]
    if timeline.state not in ENDED:
        row.mark = Mark.NOW if current is not Phase.READY else Mark.DONE
        if events:
            row.seconds += _between(_since(events, current), timeline.as_of)
    else:
        row.mark = Mark.FAILED if timeline.state in _FAILED else Mark.ENDED
    return tuple(rows.values())


def _walk(rows: dict[Phase, Row], events: Sequence[TimelineEvent]) -> Phase | None:
    """Fill in what has happened; return the phase that it has come to."""
    current: Phase | None = None
    since: datetime | None = None
    for event in events:
        phase = current if _is_last(event) else PHASE[event.state]
        if phase is None:
            phase = Phase.ASKED
        if current is not None and since is not None and phase is not current:
            rows[current].seconds += _between(since, event.at)
            rows[current].mark = Mark.DONE
            since = event.at
        elif current is not None and since is not None and _is_last(event):
            rows[current].seconds += _between(since, event.at)
            since = event.at
        if current is not phase or since is None:
            since = event.at
        current = phase
        row = rows[phase]
        row.began = row.began or event.at
        if event.explanation is not None:
            note = sentence(event.explanation, now=event.at)
            if not row.notes or row.notes[-1] != note:
                row.notes.append(note)
        if event.progress is not None:
            if row.steps and row.steps[-1].step == event.progress.step:
                row.steps.pop()
            row.steps.append(event.progress)
    return current


def _pass_through(rows: dict[Phase, Row], current: Phase) -> None:
    """Mark what lies before *current* and took no time, so that no entry tells of it."""
    for phase in _ORDER[: _ORDER.index(current)]:
        if rows[phase].began is None:
            rows[phase].mark = Mark.DONE
            rows[phase].began = rows[current].began


def _is_last(event: TimelineEvent) -> bool:
    """Whether the event tells of an end, or of a silence, rather than of a phase."""
    return event.state in ENDED | {State.UNKNOWN, State.STOPPING}


def _since(events: Sequence[TimelineEvent], phase: Phase) -> datetime:
    """Return since when the workload has been in *phase* without a break."""
    since = events[-1].at
    for event in reversed(events):
        if not _is_last(event) and PHASE[event.state] is not phase:
            break
        since = event.at
    return since


def _step(progress: Progress) -> str:
    return progress.step.replace("_", " ").capitalize()


def _counted(progress: Progress) -> str:
    if progress.total is None:
        known = f": {progress.done} {progress.unit}" if progress.done else ""
        return f"{_step(progress)}{known}"
    return f"{_step(progress)}: {progress.done} of {progress.total} {progress.unit}"


def _label(phase: Phase, timeline: Timeline) -> str:
    title = timeline.profile_title or timeline.profile or "a server"
    machine = f" on {timeline.machine}" if timeline.machine else " on a machine"
    return {
        Phase.ASKED: f"Asked for {title}",
        Phase.WAITING: "Waiting in line",
        Phase.PLACED: f"Placed{machine}",
        Phase.STARTING: "Starting the server",
        Phase.READY: "Ready",
    }[phase]


def _between(begin: datetime, end: datetime) -> float:
    """Return the seconds between; clocks of two machines never make it negative."""
    return max(0.0, (end - begin).total_seconds())


def spoken(seconds: float) -> str:
    """Return a duration as people say it."""
    whole = int(seconds)
    if whole < 60:  # noqa: PLR2004 - seconds in a minute
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:  # noqa: PLR2004 - minutes in an hour
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"
