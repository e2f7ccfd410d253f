"""How work ended, told with codes; and which progress is worth telling."""

from __future__ import annotations

import errno

import pytest

from fleet_agent.drivers.base import Condition, DriverError, Standing
from fleet_agent.errors import LedgerWriteError
from fleet_agent.outcomes import LONGEST_DETAIL, explain, failed, judge_end, late
from fleet_agent.progress import SHORTEST_PAUSE, Throttle
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DriverError(Reason.PORT_TAKEN, "secret text"), Reason.PORT_TAKEN),
        (OSError(errno.ENOSPC, "no space"), Reason.DISK_FULL),
        (OSError(errno.EDQUOT, "quota"), Reason.DISK_FULL),
        (LedgerWriteError("full"), Reason.DISK_FULL),
        (OSError(errno.EACCES, "secret text"), Reason.START_FAILED),
        (RuntimeError("secret text"), Reason.START_FAILED),
    ],
)
def test_an_error_becomes_a_code_and_its_text_stays_here(
    error: Exception, reason: Reason
) -> None:
    """What a driver raises for the operator is not what a user reads."""
    explanation = explain(error, Reason.START_FAILED)
    assert explanation.reason is reason
    assert "secret" not in (explanation.detail or "")


@pytest.mark.parametrize(
    ("condition", "event", "reason"),
    [
        (Condition(standing=Standing.GONE, exit_code=0), AgentEvent.ENDED, None),
        (
            Condition(standing=Standing.GONE, exit_code=1),
            AgentEvent.FAILED,
            Reason.SERVER_EXITED,
        ),
        (
            Condition(standing=Standing.GONE),
            AgentEvent.FAILED,
            Reason.SERVER_EXITED,
        ),
        (
            Condition(
                standing=Standing.GONE,
                exit_code=137,
                explanation=Explanation(reason=Reason.OUT_OF_MEMORY),
            ),
            AgentEvent.FAILED,
            Reason.OUT_OF_MEMORY,
        ),
    ],
)
def test_an_end_that_nobody_asked_for_is_a_failure_unless_it_was_orderly(
    condition: Condition, event: AgentEvent, reason: Reason | None
) -> None:
    """A server that its user shut down from inside has simply ended."""
    outcome = judge_end(condition)
    assert outcome.event is event
    assert (outcome.explanation and outcome.explanation.reason) is reason


def test_a_deadline_is_told_in_seconds() -> None:
    """The sentence says how long was waited."""
    outcome = late(Reason.PREPARE_TIMEOUT, 12.7)
    assert outcome.explanation == Explanation(
        reason=Reason.PREPARE_TIMEOUT, requested=12, unit="seconds"
    )


def test_a_detail_without_end_is_cut() -> None:
    """A report stays a message."""
    long = Explanation(reason=Reason.START_FAILED, detail="x" * 10**6)
    outcome = failed(long)
    assert outcome.explanation is not None
    assert len(outcome.explanation.detail or "") == LONGEST_DETAIL + 1


def test_progress_is_told_at_every_step_and_in_between_rarely() -> None:
    """A driver may tell every file; the ledger does not write every file."""
    throttle = Throttle()

    def tell(step: str, done: int, now: float) -> bool:
        return throttle.passes(Progress(step=step, done=done, total=100), now=now)

    assert tell("download", 0, 0.0)
    assert not tell("download", 1, 0.1)
    assert not tell("download", 2, SHORTEST_PAUSE - 0.01)
    assert tell("download", 3, SHORTEST_PAUSE)
    assert tell("install", 0, SHORTEST_PAUSE + 0.01)
    assert tell("install", 100, SHORTEST_PAUSE + 0.02)
