"""What of a timeline is shown, without any word: five phases with what each took.

Pages without a script and notebooks show this; ``server_ext/src/timeline/view.ts`` is
the same in the browser, and both are held to one set of examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from fleet_contracts.allocations import ENDED, PHASE, Phase, State
from fleet_contracts.reasons import INSTEAD, Explanation
from fleet_contracts.timeline import Progress, Timeline, TimelineEvent, TimelineKind


class StepStatus(StrEnum):
    """How far a phase is."""

    DONE = "done"
    NOW = "now"
    TODO = "todo"
    FAILED = "failed"
    HELD = "held"
    """Nobody knows, because its machine is silent."""


GLYPHS: Final[dict[StepStatus, str]] = {
    StepStatus.DONE: "✓",
    StepStatus.NOW: "●",
    StepStatus.TODO: "○",
    StepStatus.FAILED: "✕",
    StepStatus.HELD: "‖",
}
"""The sign beside the word: colour is never alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One of the five phases."""

    phase: Phase
    status: StepStatus
    began: datetime | None = None
    """None: not begun, or no longer kept."""
    seconds: float | None = None
    """All visits together; None: not begun, no longer kept, or it takes no time."""
    explanation: Explanation | None = None
    instead: tuple[Explanation, ...] = ()
    """What may be done instead of what was refused in it."""
    notes: tuple[TimelineEvent, ...] = ()
    """What else was told in it, such as a promise that was not kept."""
    machine: str | None = None
    progress: tuple[Progress, ...] = ()
    """The newest state of each thing that was done."""

    @property
    def is_now(self) -> bool:
        """The workload is in this phase, or ended in it."""
        return self.status not in {StepStatus.DONE, StepStatus.TODO}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An earlier start of the same server."""

    generation: int
    began: datetime
    admitted_seconds: float | None
    """How long it took to be ready; None: it never was."""
    outcome: State
    explanation: Explanation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Everything that is shown of one start, and of those before it."""

    as_of: datetime
    """The moment that it is seen from."""
    steps: tuple[Step, ...]
    ready_at: datetime | None
    total_seconds: float | None
    """From asking until ready, or until now; None: the beginning is not kept."""
    waiting_seconds: float
    since: tuple[TimelineEvent, ...]
    """What happened after it was ready."""
    runs: tuple[Run, ...] = ()
    """The earlier starts, the newest first."""


@dataclass(slots=True, kw_only=True)
class _Visit:
    """A stretch of time in one phase."""

    phase: Phase
    began: datetime
    ended: datetime
    events: list[TimelineEvent] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """How long; clocks of two machines never make it negative."""
        return max(0.0, (self.ended - self.began).total_seconds())


_ORDER: Final = tuple(Phase)
MOST_NOTES: Final = 5
"""How many notes of one phase are shown; the document has all."""


def shown(timeline: Timeline) -> Shown:
    """Return what is shown of the current start, as of the document's moment."""
    events = sorted(
        (e for e in timeline.events if e.generation == timeline.generation),
        key=lambda event: event.seq,
    )
    visits = _visits(events, timeline)
    at = visits[-1].phase if visits else timeline.phase
    ready = next((visit for visit in visits if visit.phase is Phase.READY), None)
    last = ready.began if ready else visits[-1].ended if visits else timeline.as_of
    asked = events[0].at if events and not timeline.truncated else None
    return Shown(
        as_of=timeline.as_of,
        steps=tuple(_step(phase, at, visits, timeline) for phase in _ORDER),
        ready_at=ready.began if ready else None,
        total_seconds=max(0.0, (last - asked).total_seconds()) if asked else None,
        waiting_seconds=sum(
            visit.seconds
            for visit in visits
            if visit.phase in {Phase.ASKED, Phase.WAITING}
        ),
        since=_since_ready(events),
        runs=_runs(timeline),
    )


NOTHING_YET: Final = tuple(
    Step(phase=phase, status=StepStatus.NOW if index == 0 else StepStatus.TODO)
    for index, phase in enumerate(Phase)
)
"""The five phases where nothing is known: a page is never blank."""


def _visits(events: Sequence[TimelineEvent], timeline: Timeline) -> list[_Visit]:
    """Cut the events into visits of phases.

    A workload that a machine hands back visits ``waiting`` twice.  An end, a stop and
    silence belong to the phase that they meet.
    """
    visits: list[_Visit] = []
    for event in events:
        last = visits[-1] if visits else None
        phase = _phase_of(event) or (last.phase if last else Phase.ASKED)
        if last:
            last.ended = event.at
        if last and last.phase is phase:
            last.events.append(event)
        else:
            visits.append(
                _Visit(phase=phase, began=event.at, ended=event.at, events=[event])
            )
    if visits and timeline.state not in ENDED:
        visits[-1].ended = max(timeline.as_of, visits[-1].ended)
    return visits


def _phase_of(event: TimelineEvent) -> Phase | None:
    if event.state in ENDED | {State.STOPPING, State.UNKNOWN}:
        return None
    return PHASE[event.state]


def _step(
    phase: Phase, at: Phase, visits: Sequence[_Visit], timeline: Timeline
) -> Step:
    mine = [visit for visit in visits if visit.phase is phase]
    events = [event for visit in mine for event in visit.events]
    status = _status(phase, at, timeline.state)
    skipped = status is StepStatus.DONE and not timeline.truncated
    is_timed = phase is not Phase.READY and status is not StepStatus.TODO
    explanation = _explanation(phase, at, events, timeline)
    newest = {e.progress.step: e.progress for e in events if e.progress}
    return Step(
        phase=phase,
        status=status,
        began=mine[0].began if mine else None,
        seconds=(
            sum(visit.seconds for visit in mine)
            if is_timed and (mine or skipped)
            else None
        ),
        explanation=explanation,
        notes=() if phase is Phase.READY else _notes(events, explanation),
        instead=tuple(_instead(phase, at, events, timeline)),
        machine=next((e.machine for e in reversed(events) if e.machine), None),
        progress=tuple(newest.values()),
    )


def _status(phase: Phase, at: Phase, state: State) -> StepStatus:
    distance = _ORDER.index(phase) - _ORDER.index(at)
    if distance:
        return StepStatus.DONE if distance < 0 else StepStatus.TODO
    if phase is Phase.READY:
        # It was ready, whatever came later; that is told below the phases.
        return StepStatus.DONE
    if state is State.UNKNOWN:
        return StepStatus.HELD
    return StepStatus.FAILED if state in ENDED else StepStatus.NOW


def _explanation(
    phase: Phase, at: Phase, events: Sequence[TimelineEvent], timeline: Timeline
) -> Explanation | None:
    if phase is at and phase is not Phase.READY and timeline.explanation:
        return timeline.explanation
    told = [
        event
        for event in reversed(events)
        if event.explanation
        and (phase is not Phase.READY or event.kind is TimelineKind.READY)
    ]
    # A note says what happened meanwhile: it is the reason only where there is no other.
    reasons = [event for event in told if event.kind is not TimelineKind.NOTE]
    return next((event.explanation for event in reasons or told), None)


def _notes(
    events: Sequence[TimelineEvent], explanation: Explanation | None
) -> tuple[TimelineEvent, ...]:
    """Return the latest notes among *events* that *explanation* does not tell."""
    notes = [
        event
        for event in events
        if event.kind is TimelineKind.NOTE
        and event.explanation is not None
        and event.explanation.reason not in INSTEAD
        and (explanation is None or event.explanation.reason != explanation.reason)
    ]
    return tuple(notes[-MOST_NOTES:])


def _instead(
    phase: Phase, at: Phase, events: Sequence[TimelineEvent], timeline: Timeline
) -> Iterator[Explanation]:
    if phase is at and timeline.state is State.REFUSED:
        for event in events:
            if event.explanation and event.explanation.reason in INSTEAD:
                yield event.explanation


def _since_ready(events: Sequence[TimelineEvent]) -> tuple[TimelineEvent, ...]:
    ready = next((i for i, e in enumerate(events) if e.state is State.READY), None)
    if ready is None:
        return ()
    later = events[ready + 1 :]
    return tuple(event for event in later if event.kind is not TimelineKind.READY)


def _runs(timeline: Timeline) -> tuple[Run, ...]:
    runs: dict[int, list[TimelineEvent]] = {}
    for event in sorted(timeline.events, key=lambda event: event.seq):
        if event.generation < timeline.generation:
            runs.setdefault(event.generation, []).append(event)
    return tuple(
        _run(generation, runs[generation]) for generation in sorted(runs, reverse=True)
    )


def _run(generation: int, events: Sequence[TimelineEvent]) -> Run:
    began = events[0].at
    ready = next((e.at for e in events if e.state is State.READY), None)
    return Run(
        generation=generation,
        began=began,
        admitted_seconds=max(0.0, (ready - began).total_seconds()) if ready else None,
        outcome=events[-1].state,
        explanation=next(
            (e.explanation for e in reversed(events) if e.explanation), None
        ),
    )
