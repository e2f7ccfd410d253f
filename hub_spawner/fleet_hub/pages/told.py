"""A timeline as a page without a script shows it; ``timeline.js`` goes on from there.

The elements carry the keys of the script's own, so that it changes them in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fleet_contracts import telling
from fleet_contracts.allocations import ENDED, Phase, State
from fleet_contracts.language import translated
from fleet_contracts.sentences import remedy, sentence
from fleet_contracts.steps import NOTHING_YET, Shown, Step, shown
from fleet_contracts.timeline import Timeline
from fleet_contracts.timeline_phrases import TEXTS


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldStep:
    """One of the five rows."""

    phase: Phase
    status: str
    glyph: str
    word: str
    label: str
    took: str
    datetime: str
    """The same for a program; empty where nothing is known."""
    began: str
    """The moment for a program; empty: it has not begun."""
    is_now: bool
    facts: tuple[tuple[str, str, str], ...]
    """Key, term and text of what is told when the row is opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """All that the page says of one server's start."""

    title: str
    key: str
    headline: str
    spent: str
    steps: tuple[ToldStep, ...]
    lists: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Key, title and lines of what came with the steps."""
    can_leave: bool = False
    """It waits or is on its way, so that it can be given up."""
    is_over: bool = False


def tell(timeline: Timeline | None, *, headline: str | None = None) -> Told:
    """Return what a page says of *timeline*, as of its moment.

    None: nothing is known yet.  *headline* stands instead of the document's own.
    """
    if timeline is None:
        return Told(
            title=telling.title(None),
            key="",
            headline=headline or "",
            spent="",
            steps=tuple(_step(step, None, None) for step in NOTHING_YET),
        )
    account = shown(timeline)
    own = telling.headline_words(timeline, account)
    return Told(
        title=telling.title(timeline),
        key=f"steps-{timeline.workload}-{timeline.generation}",
        headline=own if headline is None else headline,
        spent=telling.spent(account),
        steps=tuple(_step(step, timeline, account) for step in account.steps),
        lists=tuple(entry for entry in _lists(timeline, account) if entry[2]),
        can_leave=timeline.state not in ENDED | {State.READY, State.STOPPING}
        and account.ready_at is None,
        is_over=timeline.state in ENDED,
    )


def _step(step: Step, timeline: Timeline | None, account: Shown | None) -> ToldStep:
    ready_at = account.ready_at if account else None
    datetime = "" if step.seconds is None else f"PT{int(step.seconds)}S"
    if step.phase is Phase.READY and ready_at is not None:
        datetime = ready_at.isoformat()
    return ToldStep(
        phase=step.phase,
        status=step.status.value,
        glyph=telling.glyph(step.status),
        word=telling.status_word(step.status),
        label=telling.label(step, timeline),
        took=telling.took(step, account),
        datetime=datetime,
        began=step.began.isoformat() if step.began else "",
        is_now=step.is_now,
        facts=tuple(_facts(step, timeline)) if timeline else (),
    )


def _facts(step: Step, timeline: Timeline) -> Iterator[tuple[str, str, str]]:
    if step.began is not None:
        yield "began", translated(TEXTS["began"]), telling.moment(step.began)
    if step.phase is Phase.ASKED and timeline.class_name:
        yield "class", translated(TEXTS["class_term"]), timeline.class_name
    if step.explanation is not None:
        yield (
            "why",
            translated(TEXTS["why_term"]),
            sentence(step.explanation, now=timeline.as_of),
        )
        yield "help", translated(TEXTS["help_term"]), remedy(step.explanation.reason)
    for event in step.notes:
        term = translated(TEXTS["note_term"])
        yield f"note-{event.seq}", term, telling.note_words(event, timeline.as_of)
    for number, way in enumerate(step.instead):
        term = translated(TEXTS["instead_term"])
        yield f"instead-{number}", term, sentence(way, now=timeline.as_of)
    for progress in step.progress:
        words = telling.progress_words(progress)
        term = translated(TEXTS["step_term"])
        yield f"progress-{progress.step}", term, words


def _lists(
    timeline: Timeline, account: Shown
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    since = (
        f"{telling.time_at(event.at, timeline.as_of)} "
        + telling.event_with_why(event, timeline.as_of)
        for event in account.since
    )
    yield "since", translated(TEXTS["since_then"]), tuple(since)
    limits = telling.limit_lines(timeline.limits, timeline.as_of)
    yield "limits", translated(TEXTS["limits"]), tuple(limits)
    earlier = tuple(map(telling.run_words, account.runs))
    yield "runs", translated(TEXTS["earlier_starts"]), earlier
