"""Why a promised time cannot be kept, as the one who waits reads it."""

from __future__ import annotations

import re

import pytest

from fleet_contracts.causes import CAUSES, Cause
from fleet_contracts.language import speaking
from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_contracts.sentences import sentence


KEPT = "The promised time cannot be kept"


def told(cause: str | None, *holders: Holder, machine: str | None = None) -> str:
    """Return what is read of a promise that broke for *cause*."""
    return sentence(
        Explanation(
            reason=Reason.PROMISE_BROKEN,
            subject=cause,
            holders=holders,
            machine=machine,
        )
    )


def test_every_cause_has_words_and_none_is_read_as_its_code() -> None:
    """Those of the line, and each reason for which a machine takes nothing."""
    assert set(CAUSES) == set(Cause)
    assert len(set(CAUSES.values())) == len(CAUSES)
    for cause in (*Cause, *Reason):
        text = told(cause)
        assert re.fullmatch(rf"{KEPT} because [^{{}}\[\]]+\.", text), text
        assert cause.value not in text or "_" not in cause.value


@pytest.mark.parametrize("cause", [Cause.PRIORITY, Cause.PUT_FIRST])
def test_who_came_before_is_named_as_far_as_the_reader_may_know(cause: Cause) -> None:
    """Nobody is said to hold anything; an admin who reads is not addressed."""
    for holders, name in (
        ((), "somebody else's server"),
        ((Holder(workload="w1"),), "somebody else's server"),
        ((Holder(workload="w1", owner="bob"),), "a server of bob"),
        ((Holder(workload="w1", owner="me", own=True),), "another of your servers"),
    ):
        text = told(cause, *holders, machine="box")
        assert name in text
        assert text.startswith("On box, the promised time cannot be kept because ")
        assert "held by" not in text
        assert "known end" not in text
    mine = Holder(workload="w1", owner="me", own=True)
    with speaking(of_another=True):
        assert "another of its user's servers" in told(cause, mine)


def test_no_cause_and_one_of_a_newer_controller_are_readable() -> None:
    """The first says nothing more; the second is spelled out, and rewrites nothing."""
    assert told(None) == f"{KEPT}."
    assert told("") == f"{KEPT}."
    assert told("moon_eclipsed") == f"{KEPT} because moon eclipsed."
    assert "\u202e" not in told("x\u202ey")
