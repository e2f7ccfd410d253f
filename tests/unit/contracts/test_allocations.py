"""The table of a workload's life is complete, and keeps its promises."""

from __future__ import annotations

import pytest

from fleet_contracts.allocations import (
    ENDED,
    HOLDING,
    LIVE,
    PHASE,
    TRANSITIONS,
    Event,
    IllegalTransitionError,
    State,
    advance,
)


def test_every_state_lists_every_event() -> None:
    """A new state or event cannot be forgotten in a corner of the table."""
    assert set(TRANSITIONS) == set(State)
    assert all(set(row) == set(Event) for row in TRANSITIONS.values())


def test_every_state_has_a_phase() -> None:
    """Whatever happens, a person sees one of the five phases."""
    assert set(PHASE) == set(State)


def test_silence_frees_nothing() -> None:
    """A holding workload on a silent machine still holds."""
    for state in HOLDING:
        assert advance(state, Event.MACHINE_SILENT) in HOLDING


def test_holding_ends_only_by_the_machines_word_or_an_admins() -> None:
    """No request of a user and no silence leads out of the holding states."""
    freeing = {
        event
        for state in HOLDING
        for event, target in TRANSITIONS[state].items()
        if target is not None and target not in HOLDING
    }
    assert freeing == {
        Event.WITHDRAWN,
        Event.REJECTED,
        Event.FAILED,
        Event.ENDED,
        Event.MACHINE_LOST,
    }


def test_an_ended_workload_lives_again_only_when_asked_for() -> None:
    """A late report cannot bring a workload back."""
    for state in ENDED:
        reviving = {
            event
            for event, target in TRANSITIONS[state].items()
            if target is not None and target in LIVE
        }
        assert reviving == {Event.ASKED}


def test_a_stop_while_stopping_survives_late_reports() -> None:
    """A server that answers after its stop was asked for stays stopping."""
    assert advance(State.STOPPING, Event.SERVING) is State.STOPPING


def test_an_impossible_event_names_both_sides() -> None:
    """The error says which state met which event."""
    with pytest.raises(IllegalTransitionError, match=r"queued.*serving"):
        advance(State.QUEUED, Event.SERVING)
