"""What a page shows of a timeline: phases, their times, and what can be done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from fleet_builders import NOON

from fleet_contracts.allocations import PHASE, State
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress, Timeline, TimelineEvent, TimelineKind
from fleet_hub.service.views import Mark, spoken, view_of


def a_timeline(
    *steps: tuple[float, TimelineKind, State], as_of: float, **changes: Any
) -> Timeline:
    """Return a document of (seconds after noon, kind, state after it)."""
    events = tuple(
        TimelineEvent(
            seq=number,
            generation=1,
            at=NOON + timedelta(seconds=seconds),
            kind=kind,
            state=state,
        )
        for number, (seconds, kind, state) in enumerate(steps, start=1)
    )
    state = steps[-1][2]
    return Timeline.model_validate(
        {
            "as_of": NOON + timedelta(seconds=as_of),
            "workload": "w1",
            "generation": 1,
            "user": "alice",
            "server": "",
            "profile": "jupyter",
            "profile_title": "JupyterLab",
            "class": "small",
            "machine": "box",
            "state": state,
            "phase": PHASE[state],
            "headline": "…",
            "events": events,
        }
        | changes
    )


ASKED = (0, TimelineKind.ASKED, State.REQUESTED)
WAITING = (1, TimelineKind.WAITING, State.QUEUED)
PLACED = (61, TimelineKind.PLACED, State.PLACED)
PREPARING = (62, TimelineKind.PREPARING, State.PREPARING)
STARTING = (72, TimelineKind.STARTING, State.STARTING)
READY = (80, TimelineKind.READY, State.READY)


def test_a_ready_server_has_five_phases_that_are_done() -> None:
    """Each with its own time, and the waiting told apart from the starting."""
    steps = (ASKED, WAITING, PLACED, PREPARING, STARTING, READY)
    view = view_of(a_timeline(*steps, as_of=500))
    assert [row.mark for row in view.rows] == [Mark.DONE] * 5
    assert [row.seconds for row in view.rows][:4] == [1, 60, 1, 18]
    assert view.waited == "1 min 0 s"
    assert view.total == "1 min 20 s"
    assert view.waited_share == 75.0
    assert not view.can_leave


def test_the_phase_that_is_under_way_ticks_until_now() -> None:
    """The others are frozen, and later ones are still to come."""
    view = view_of(a_timeline(ASKED, WAITING, as_of=31))
    assert [row.mark for row in view.rows] == [
        Mark.DONE,
        Mark.NOW,
        Mark.LATER,
        Mark.LATER,
        Mark.LATER,
    ]
    assert view.rows[1].seconds == 30
    assert view.rows[2].duration == "—"
    assert view.can_leave


def test_a_start_without_waiting_has_the_wait_behind_it() -> None:
    """A phase that no entry tells of, before the current one, is done in no time."""
    placed = (1, TimelineKind.PLACED, State.PLACED)
    view = view_of(a_timeline(ASKED, placed, as_of=3))
    assert (view.rows[1].mark, view.rows[1].duration) == (Mark.DONE, "0 s")
    assert view.rows[2].mark is Mark.NOW
    assert (view.rows[3].mark, view.rows[3].duration) == (Mark.LATER, "—")


def test_a_rejection_adds_to_the_waiting() -> None:
    """Back in the line: both waits count."""
    steps = (
        ASKED,
        WAITING,
        (11, TimelineKind.PLACED, State.PLACED),
        (13, TimelineKind.WAITING, State.QUEUED),
    )
    view = view_of(a_timeline(*steps, as_of=20))
    assert view.rows[1].mark is Mark.NOW
    assert view.rows[1].seconds == 10 + 7


@pytest.mark.parametrize(
    ("kind", "state", "mark"),
    [
        (TimelineKind.FAILED, State.FAILED, Mark.FAILED),
        (TimelineKind.REFUSED, State.REFUSED, Mark.FAILED),
        (TimelineKind.STOPPED, State.STOPPED, Mark.ENDED),
    ],
)
def test_an_end_marks_the_phase_that_it_ended(
    kind: TimelineKind, state: State, mark: Mark
) -> None:
    """What came before stays done, and nothing counts on."""
    steps = (ASKED, WAITING, (31, kind, state))
    view = view_of(a_timeline(*steps, as_of=9999))
    assert view.rows[1].mark is mark
    assert view.rows[1].seconds == 30
    assert view.is_over
    assert not view.can_leave


def test_clocks_that_disagree_never_give_a_negative_time() -> None:
    """An agent's clock may be behind."""
    steps = (ASKED, (5, TimelineKind.PLACED, State.PLACED))
    behind = (2, TimelineKind.PREPARING, State.PREPARING)
    view = view_of(a_timeline(*steps, behind, as_of=1))
    assert all(row.seconds >= 0 for row in view.rows)


def test_the_reason_and_its_remedy_are_told() -> None:
    """Why it waits, and what would change it."""
    why = Explanation(reason=Reason.NO_MACHINES)
    view = view_of(a_timeline(ASKED, WAITING, as_of=2, explanation=why))
    assert view.why
    assert view.remedy


def test_progress_is_words_with_its_unit() -> None:
    """A step that is counted, and one whose end nobody knows."""
    for progress, words in (
        (
            Progress(step="install_packages", done=3, total=9, unit="packages"),
            "Install packages: 3 of 9 packages",
        ),
        (Progress(step="fetch", done=3, unit="MiB"), "Fetch: 3 MiB"),
    ):
        event = TimelineEvent(
            seq=3,
            generation=1,
            at=NOON,
            kind=TimelineKind.PROGRESS,
            state=State.PREPARING,
            progress=progress,
        )
        document = a_timeline(ASKED, PREPARING, as_of=70)
        document = document.model_copy(update={"events": (*document.events, event)})
        assert words in view_of(document).rows[3].told


def test_only_the_step_under_way_has_numbers() -> None:
    """A step that another one followed is over, however far its last count came."""
    document = a_timeline(ASKED, PREPARING, as_of=70)
    steps = [
        TimelineEvent(
            seq=3 + number,
            generation=1,
            at=NOON,
            kind=TimelineKind.PROGRESS,
            state=State.PREPARING,
            progress=Progress(step=step, done=done, total=9),
        )
        for number, (step, done) in enumerate(
            [("fetch", 8), ("install", 2), ("install", 3)]
        )
    ]
    document = document.model_copy(update={"events": (*document.events, *steps)})
    assert view_of(document).rows[3].told == ["Fetch", "Install: 3 of 9 steps"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 min 0 s"), (3660, "1 h 1 min")],
)
def test_durations_are_said_as_people_say_them(seconds: float, words: str) -> None:
    """Never a fraction, never more than two units."""
    assert spoken(seconds) == words
