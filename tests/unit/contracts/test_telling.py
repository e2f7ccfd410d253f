"""The words of a timeline, for pages without a script and for notebooks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleet_contracts.allocations import PHASE, State
from fleet_contracts.language import speaking
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.steps import shown
from fleet_contracts.telling import (
    duration,
    ends_after,
    event_with_why,
    event_words,
    glyph,
    headline_words,
    label,
    limit_lines,
    progress_words,
    span,
    spent,
    status_word,
    title,
    took,
)
from fleet_contracts.time_limits import SetBy, TimeLimit, TimeLimits
from fleet_contracts.timeline import (
    LikelyStart,
    Limits,
    Progress,
    Timeline,
    TimelineEvent,
    TimelineKind,
)


NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
GIB = 1024**3


def an_event(kind: TimelineKind, **facts: Any) -> TimelineEvent:
    """Return an event of noon."""
    return TimelineEvent(
        seq=1, generation=1, at=NOON, kind=kind, state=State.PLACED, **facts
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "—"),
        (-3, "0 s"),
        (59.9, "59 s"),
        (60, "1 min 0 s"),
        (7_500, "2 h 5 min"),
        (86_400, "1 day 0 h"),
        (200_000, "2 days 7 h"),
    ],
)
def test_a_length_of_time_has_its_two_largest_units(
    seconds: float | None, said: str
) -> None:
    """A dash where it is not known; clocks that differ give nothing below zero."""
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((30, "30 s"), (600, "10 min"), (28_800, "8 h"), (5_400, "1 h 30 min")),
        *((86_400, "1 day"), (7 * 86_400, "7 days")),
    ],
)
def test_a_chosen_length_of_time_is_said_as_it_was_chosen(
    seconds: float, said: str
) -> None:
    """Nobody says eight hours and no minutes."""
    assert span(seconds) == said


def test_progress_is_told_in_amounts_and_never_in_percent() -> None:
    """Bytes as bytes; a step that this release does not know is spelled out."""
    known = Progress(step="install_packages", done=3, total=9)
    pulled = Progress(step="pull_image", done=GIB, total=2 * GIB, unit="bytes")
    foreign = Progress(step="polish_the_glass")

    assert progress_words(known) == "Installing packages: 3 of 9"
    assert progress_words(pulled).endswith("1 GiB of 2 GiB")
    assert progress_words(foreign) == "Polish the glass"


def test_an_event_says_what_happened_and_where() -> None:
    """A machine's name stands as it is, and a sentence begins with a capital."""
    placed = an_event(TimelineKind.PLACED, machine="gpu-17")
    asked = an_event(TimelineKind.ASKED)
    building = an_event(TimelineKind.PROGRESS, progress=Progress(step="check"))

    assert "gpu-17" in event_words(placed)
    assert event_words(asked)[0].isupper()
    assert event_words(building) == "Check"


def test_limits_are_told_one_a_line() -> None:
    """With what is left of the time, and nothing about what is not limited."""
    ends = Limits(
        ends_at=NOON + timedelta(hours=2),
        metal_reserved=True,
        devices=1,
        cpu_milli=1000,
        memory_bytes=GIB,
    )
    over = Limits(ends_at=NOON - timedelta(seconds=5), devices=2, cpu_milli=1500)

    told = limit_lines(ends, NOON)
    assert "2 h 0 min" in told[0]
    assert told[2:4] == ["1 GPU", "1 core"]
    assert "1 GiB" in told[4]
    assert limit_lines(over, NOON)[1:] == ["2 GPUs", "1.5 cores"]
    assert limit_lines(Limits(), NOON) == []


def test_the_promised_and_the_likely_start_are_told_apart() -> None:
    """The likely one with how many waits it is said from; another day is named."""
    likely = LikelyStart(
        early=NOON + timedelta(minutes=5), late=NOON + timedelta(hours=1), samples=40
    )
    waits = Limits(starts_by=NOON + timedelta(hours=13), likely=likely)
    assert limit_lines(waits, NOON) == [
        "Starts no later than 2026-11-30 01:00:00 UTC",
        (
            "Likely by 12:05:00 UTC, or by 13:00:00 UTC: "
            "half and nine in ten of 40 similar starts came as early"
        ),
    ]


def test_a_wait_that_outlasts_what_is_likely_says_so() -> None:
    """By the fleet's word, or once the likely time has passed beside an open page."""
    likely = LikelyStart(early=NOON, late=NOON, samples=40)
    longer = "This takes longer than usual."
    assert limit_lines(Limits(likely=likely), NOON + timedelta(seconds=1)) == [longer]
    told = limit_lines(Limits(likely=likely, longer_than_usual=True), NOON)
    assert told[1:] == [longer]
    assert told[0].startswith("Likely by 12:00")


def test_a_timeline_without_a_server_has_a_title_too() -> None:
    """As a page has, before it knows more."""
    assert title(None)


def a_timeline(*events: TimelineEvent, **facts: Any) -> Timeline:
    """Return the document of ada's default server, ten seconds after noon."""
    state = events[-1].state
    values: dict[str, Any] = {"workload": "w1", "generation": 1, "user": "ada"}
    values |= {"server": "", "headline": "Placed.", "state": state}
    values |= {"phase": PHASE[state], "as_of": NOON + timedelta(seconds=10)}
    return Timeline(events=events, **(values | facts))


def test_each_phase_is_named_and_says_how_it_stands() -> None:
    """With profile and machine where they are known, and without where they are not."""
    placed = a_timeline(
        an_event(TimelineKind.PLACED), machine="box", profile_title="Small"
    )
    bare = a_timeline(an_event(TimelineKind.PLACED))
    steps = shown(placed).steps

    assert [step.is_now for step in steps] == [False, False, True, False, False]
    assert [label(step, placed) for step in steps][2] == "Placed on box"
    assert "Small" in label(steps[0], placed)
    assert label(steps[0], None) == label(steps[0], bare)
    assert "box" not in label(shown(bare).steps[2], bare)
    assert glyph(steps[2].status)
    assert status_word(steps[2].status)


def test_a_headline_to_somebody_else_is_made_anew() -> None:
    """What was written in English, to the owner, would speak of "your" server."""
    written = a_timeline(an_event(TimelineKind.PLACED), machine="box")
    timeline = written.model_copy(update={"headline": "Your server is placed."})

    assert headline_words(timeline, shown(timeline)) == "Your server is placed."
    with speaking(of_another=True):
        assert headline_words(timeline, shown(timeline)) == "A place was found on box."


def test_what_is_over_says_how_long_it_took() -> None:
    """The last phase says when, and one without a beginning says nothing."""
    asked = an_event(TimelineKind.ASKED).model_copy(update={"state": State.REQUESTED})
    ready = an_event(TimelineKind.READY).model_copy(
        update={"state": State.READY, "at": NOON + timedelta(seconds=8), "seq": 2}
    )
    whole = a_timeline(asked, ready, machine="box")
    nowhere = a_timeline(asked, ready)
    placed = a_timeline(an_event(TimelineKind.PLACED))
    account = shown(whole)

    assert headline_words(whole, account) == "Ready on box, admitted in 8 s."
    assert "box" not in headline_words(nowhere, shown(nowhere))
    assert headline_words(placed, shown(placed)) == "Placed."
    assert took(account.steps[0], account) == "8 s"
    assert took(account.steps[-1], account) == "12:00:08 UTC"
    assert took(shown(placed).steps[-1], shown(placed)) == ""
    assert took(account.steps[-1], None) == ""
    assert spent(account).startswith("8 s in all")


def test_a_moment_of_another_day_is_told_with_its_day() -> None:
    """A limit that ends the day after tomorrow is not taken for today's."""
    ready = an_event(TimelineKind.READY).model_copy(update={"state": State.READY})
    later = a_timeline(ready).model_copy(update={"as_of": NOON + timedelta(days=1)})
    account = shown(later)
    ends = Limits(ends_at=NOON + timedelta(days=2))

    assert took(account.steps[-1], account) == "2026-11-29 12:00:00 UTC"
    assert limit_lines(ends, NOON) == [
        "Time limit at 2026-12-01 12:00:00 UTC, in 2 days 0 h"
    ]


def test_a_note_is_told_in_its_own_words() -> None:
    """What a page without a script, a cell and a terminal would call "Note"."""
    wished = Explanation(reason=Reason.RELEASE_WISHED, subject="bob")
    said = "Somebody, bob, waits for what this server holds, and asks for it."
    assert event_words(an_event(TimelineKind.NOTE, explanation=wished)) == said
    assert event_words(an_event(TimelineKind.NOTE)) == "Note"


def test_a_step_without_a_why_is_told_alone() -> None:
    """Nothing stands behind it: no empty reason, no colon."""
    placed = an_event(TimelineKind.PLACED, machine="gpu-17")
    assert event_with_why(placed, NOON) == event_words(placed)


BY_CLASS = TimeLimit(seconds=7_200, set_by=SetBy.CLASS)
BY_PROFILE = TimeLimit(seconds=1_800, set_by=SetBy.PROFILE)
UNKNOWN = TimeLimit(seconds=600)


@pytest.mark.parametrize(
    ("limit", "idle", "told"),
    [
        (None, None, ""),
        (BY_CLASS, None, "Ends after 2 h (set by the class)"),
        (UNKNOWN, None, "Ends after 10 min"),
        (
            None,
            BY_PROFILE,
            "Ends after 30 min in which nothing is computed (set by the profile)",
        ),
        (
            BY_CLASS,
            BY_PROFILE,
            (
                "Ends after 2 h (set by the class), or after 30 min in which nothing is "
                "computed (set by the profile)"
            ),
        ),
        (
            BY_PROFILE,
            BY_PROFILE,
            (
                "Ends after 30 min, or after 30 min in which nothing is computed "
                "(set by the profile)"
            ),
        ),
        (
            UNKNOWN,
            BY_CLASS,
            ("Ends after 10 min, or after 2 h in which nothing is computed"),
        ),
        (
            UNKNOWN,
            UNKNOWN,
            "Ends after 10 min, or after 10 min in which nothing is computed",
        ),
    ],
)
def test_one_sentence_says_when_a_server_ends_and_what_set_that(
    limit: TimeLimit | None, idle: TimeLimit | None, told: str
) -> None:
    """On the form, in an answer and among the limits of a timeline alike."""
    limits = TimeLimits(limit=limit, idle_limit=idle)
    assert ends_after(limits) == told
    assert limit_lines(Limits(time_limits=limits), NOON) == ([told] if told else [])


def test_an_idle_limit_is_told_with_what_keeps_it_off() -> None:
    """Only while nothing is computed: else nobody can say when it ends."""
    limits = Limits(idle_ends=NOON.replace(hour=13))
    told = "Ends at 13:00:00 UTC unless something is computed"
    assert limit_lines(limits, NOON) == [told]
