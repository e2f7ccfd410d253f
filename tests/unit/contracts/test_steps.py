"""Five phases with what each took: what every page shows of a timeline."""

from __future__ import annotations

from datetime import timedelta

import pytest
from told_timelines import START, a_timeline, an_event

from fleet_contracts import telling
from fleet_contracts.allocations import State
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.steps import shown
from fleet_contracts.timeline import Limits, Progress, TimelineEvent, TimelineKind


def test_finished_phases_are_frozen_and_the_running_one_counts_to_now() -> None:
    """And the waiting is told apart from the starting."""
    timeline = a_timeline(
        an_event(1, State.REQUESTED, 0),
        an_event(2, State.QUEUED, 1),
        an_event(3, State.PLACED, 101),
        an_event(4, State.PREPARING, 103),
        now=110,
        machine="box",
        profile_title="GPU large",
    )
    account = shown(timeline)
    steps = account.steps
    assert [step.status.value for step in steps] == [
        *("done", "done", "done", "now", "todo")
    ]
    assert [step.seconds for step in steps] == [1, 100, 2, 7, None]
    assert [telling.label(step, timeline) for step in steps] == [
        "Asked for GPU large",
        "Waiting in line",
        "Placed on box",
        "Starting the server",
        "Ready",
    ]
    assert telling.spent(account) == "1 min 50 s in all, 1 min 41 s of it waiting"


def test_waiting_twice_adds_up() -> None:
    """A machine that said no sends a start back into the line."""
    timeline = a_timeline(
        an_event(1, State.QUEUED, 0),
        an_event(2, State.PLACED, 10),
        an_event(3, State.QUEUED, 11),
        an_event(4, State.PLACED, 31),
        now=32,
    )
    assert [step.seconds for step in shown(timeline).steps][1:3] == [30, 2]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([State.REQUESTED], ["now", "todo", "todo", "todo", "todo"]),
        ([State.REQUESTED, State.REFUSED], ["failed", "todo", "todo", "todo", "todo"]),
        (
            [State.QUEUED, State.PREPARING, State.FAILED],
            ["done", "done", "done", "failed", "todo"],
        ),
        ([State.PREPARING, State.READY], ["done", "done", "done", "done", "done"]),
        ([State.QUEUED, State.STOPPED], ["done", "failed", "todo", "todo", "todo"]),
        (
            [State.PREPARING, State.UNKNOWN],
            ["done", "done", "done", "held", "todo"],
        ),
    ],
)
def test_the_phase_where_it_ended_is_marked(
    states: list[State], expected: list[str]
) -> None:
    """One glance tells how far it came."""
    events = [an_event(i, state, i) for i, state in enumerate(states, 1)]
    steps = shown(a_timeline(*events, now=10)).steps
    assert [step.status.value for step in steps] == expected


def test_the_entries_of_an_earlier_start_are_a_line_of_their_own() -> None:
    """They do not count into this one."""
    timeline = a_timeline(
        an_event(1, State.REQUESTED, 0),
        an_event(2, State.READY, 5),
        an_event(3, State.STOPPED, 60),
        an_event(4, State.REQUESTED, 90, generation=2),
        now=91,
        generation=2,
    )
    account = shown(timeline)
    assert account.steps[0].status.value == "now"
    assert [telling.run_words(run) for run in account.runs] == [
        "2026-11-01 12:00:00 UTC · ready in 5 s · stopped"
    ]


def test_clocks_that_disagree_give_no_negative_duration() -> None:
    """Skew is clamped."""
    account = shown(a_timeline(an_event(1, State.QUEUED, 10), now=0))
    assert account.steps[1].seconds == 0
    assert account.total_seconds == 0


def test_what_happened_after_it_was_ready_is_listed() -> None:
    """A machine that went silent and came back."""
    back = TimelineKind.RETURNED
    timeline = a_timeline(
        an_event(1, State.READY, 0),
        an_event(2, State.UNKNOWN, 60, machine="box"),
        an_event(3, State.READY, 90, kind=back, machine="box"),
        now=99,
    )
    assert [telling.event_words(event) for event in shown(timeline).since] == [
        "box stopped answering",
        "box answers again",
    ]


def test_the_reason_stands_in_the_phase_that_it_is_about() -> None:
    """The document's own explains the phase under way."""
    why = Explanation(reason=Reason.NO_MACHINES)
    timeline = a_timeline(an_event(1, State.QUEUED, 0), now=2, explanation=why)
    assert [step.explanation for step in shown(timeline).steps] == [
        *(None, why, None, None, None)
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((0, "0 s"), (59.9, "59 s"), (160, "2 min 40 s"), (3660, "1 h 1 min")),
        *((90_000, "1 day 1 h"), (-3, "0 s"), (None, "—")),
    ],
)
def test_durations_are_said_in_their_two_largest_units(
    seconds: float | None, words: str
) -> None:
    """As people say them, and a dash where nothing is known."""
    assert telling.duration(seconds) == words


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (
            Progress(step="install_packages", done=3, total=9, unit="packages"),
            "Installing packages: 3 of 9",
        ),
        (
            Progress(step="pull_image", done=2**29, total=2**30, unit="bytes"),
            "Fetching the image: 512 MiB of 1 GiB",
        ),
        (Progress(step="feed_the_cat", done=3), "Feed the cat"),
    ],
)
def test_progress_is_words_with_its_unit(progress: Progress, words: str) -> None:
    """A step that is counted, and one that nobody has words for."""
    assert telling.progress_words(progress) == words


def test_limits_in_force_are_sentences() -> None:
    """The time limit first, because it ends the work."""
    limits = Limits(
        cpu_milli=2500,
        memory_bytes=2**33,
        devices=2,
        metal_reserved=True,
        ends_at=START + timedelta(hours=2),
    )
    assert telling.limit_lines(limits, START) == [
        "Time limit at 14:00:00 UTC, in 2 h 0 min",
        "Holds the Mac's GPU; nothing else native runs beside it",
        "2 GPUs",
        "2.5 cores",
        "8 GiB of memory",
    ]
    assert "since" in telling.limit_lines(limits, START + timedelta(hours=3))[0]


def test_what_was_told_beside_the_reason_is_shown_in_its_phase_with_its_time() -> None:
    """A promise that was not kept, while it waits and for good; the last few of many."""
    busy = Explanation(reason=Reason.CPU_BUSY, machine="box")
    put_off = Explanation(reason=Reason.PROMISE_BROKEN, subject="moved")

    def a_note(seq: int, at: float) -> TimelineEvent:
        return an_event(
            seq, State.QUEUED, at, kind=TimelineKind.NOTE, explanation=put_off
        )

    waiting = [
        an_event(1, State.REQUESTED, 0),
        an_event(2, State.QUEUED, 1, explanation=busy),
        *(a_note(number, number) for number in range(3, 10)),
    ]
    timeline = a_timeline(*waiting, now=20, explanation=busy)
    step = shown(timeline).steps[1]
    assert step.explanation == busy
    assert [event.seq for event in step.notes] == [5, 6, 7, 8, 9]
    assert telling.note_words(step.notes[0], timeline.as_of) == (
        "12:00:05 UTC The promised time cannot be kept because an admin gave it another "
        "place in the line."
    )
    ready = a_timeline(
        *waiting,
        an_event(10, State.PLACED, 30),
        an_event(11, State.READY, 40),
        an_event(12, State.READY, 50, kind=TimelineKind.NOTE, explanation=put_off),
        now=60,
    )
    account = shown(ready)
    assert account.steps[1].explanation == busy, "it is the reason, not what came later"
    assert len(account.steps[1].notes) == 5
    assert account.steps[4].notes == ()
    (later,) = account.since
    assert telling.event_with_why(later, ready.as_of).startswith(
        "The promised time cannot be kept because an admin gave it another place"
    )


def test_a_note_that_is_the_only_reason_is_not_told_twice() -> None:
    """Such as that a Mac's GPU is reserved."""
    metal = Explanation(reason=Reason.METAL_RESERVED)
    timeline = a_timeline(
        an_event(1, State.PLACED, 0),
        an_event(2, State.PLACED, 0, kind=TimelineKind.NOTE, explanation=metal),
        an_event(3, State.PREPARING, 3),
        now=9,
    )
    step = shown(timeline).steps[2]
    assert (step.explanation, step.notes) == (metal, ())
