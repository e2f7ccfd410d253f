"""How the work on an allocation ended, and with which explanation."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Final

from fleet_agent.drivers.base import Condition, DriverError, NotNowError
from fleet_agent.errors import LedgerWriteError
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason


LONGEST_DETAIL: Final = 2000
"""Characters of a driver's detail that go into a report."""

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is reported once nothing of the allocation runs any more."""

    event: AgentEvent
    """``ended``, ``failed``, or ``rejected`` where nothing had begun yet."""
    explanation: Explanation | None = None


def failed(explanation: Explanation) -> Outcome:
    """Return the outcome of work that went wrong."""
    return Outcome(event=AgentEvent.FAILED, explanation=_bounded(explanation))


def gone_wrong(error: Exception, otherwise: Reason) -> Outcome:
    """Return the outcome of work that raised *error*."""
    if isinstance(error, NotNowError):
        explanation = _bounded(error.explanation)
        return Outcome(event=AgentEvent.REJECTED, explanation=explanation)
    return failed(explain(error, otherwise))


def late(reason: Reason, seconds: float) -> Outcome:
    """Return the outcome of work that took longer than *seconds*."""
    return failed(Explanation(reason=reason, requested=int(seconds), unit="seconds"))


def explain(error: Exception, otherwise: Reason) -> Explanation:
    """Return what a user may know of *error*; its text is for the operator's log."""
    if isinstance(error, DriverError):
        return error.explanation
    if isinstance(error, LedgerWriteError) or (
        isinstance(error, OSError) and error.errno in _NO_ROOM
    ):
        return Explanation(reason=Reason.DISK_FULL)
    return Explanation(reason=otherwise)


def judge_end(condition: Condition) -> Outcome:
    """Return the outcome of a workload that is gone without having been asked to."""
    if condition.exit_code == 0:
        return Outcome(event=AgentEvent.ENDED, explanation=condition.explanation)
    explanation = condition.explanation or Explanation(
        reason=Reason.SERVER_EXITED,
        detail=None
        if condition.exit_code is None
        else f"exit status {condition.exit_code}",
    )
    return failed(explanation)


def _bounded(explanation: Explanation) -> Explanation:
    detail = explanation.detail
    if detail is None or len(detail) <= LONGEST_DETAIL:
        return explanation
    return explanation.model_copy(update={"detail": detail[:LONGEST_DETAIL] + "…"})
