"""What went wrong on a machine is told as the machine found it, and not as "rejected"."""

from __future__ import annotations

import pytest
from fleet_controller import allocation_of
from scenario_fleets import a_box, another
from told_everywhere import (
    answer_to,
    in_a_terminal,
    rows,
    told,
)

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.sentences import sentence


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (Reason.DISK_FULL, "the machine's disk is full"),
        (Reason.CAPABILITY_MISSING, "what this needs is missing: it"),
        (Reason.DRIVER_UNAVAILABLE, "the it driver cannot be used there"),
        (Reason.EPOCH_STALE, "its agent has already seen a newer order"),
    ],
)
def test_what_an_agent_rejects_a_start_for_survives_in_words(
    cause: Reason, text: str
) -> None:
    """The word "rejected" alone would help nobody, and a code little more."""
    fleet = a_box()
    record = another(fleet, 1)
    fleet.agents["box"].report(
        allocation_of(record),
        AgentEvent.REJECTED,
        explanation=Explanation(reason=cause, detail="as it was seen there"),
    )
    fleet.cycle()
    why = told(fleet, record)
    assert (why.reason, why.subject) == (Reason.AGENT_REJECTED, cause.value)
    assert text in sentence(why)
    [row] = rows(fleet, record, cause)
    assert row.explanation is not None
    assert row.explanation.detail == "as it was seen there"


@pytest.mark.parametrize(
    ("cause", "detail"),
    [
        (Reason.PREPARE_FAILED, "The runtime's image does not exist in its registry."),
        (
            Reason.START_FAILED,
            "A folder that this machine gives every notebook is not there.",
        ),
        (Reason.ENVIRONMENT_BROKEN, "a file of it has another content"),
        (Reason.RUNTIME_MISSING, "there is no lock for this system"),
    ],
)
def test_a_missing_image_folder_or_environment_is_what_a_failed_start_says(
    cause: Reason, detail: str
) -> None:
    """The agent's own finding is the headline of the failure, in all places."""
    fleet = a_box()
    record = another(fleet, 1)
    agent, allocation = fleet.agents["box"], allocation_of(record)
    agent.report(allocation, AgentEvent.ACCEPTED)
    agent.report(
        allocation,
        AgentEvent.FAILED,
        explanation=Explanation(reason=cause, detail=detail),
    )
    fleet.cycle()
    assert fleet.get(record).state is State.FAILED
    why = told(fleet, record)
    assert (why.reason, why.detail) == (cause, detail)
    assert detail.rstrip(".") in in_a_terminal(answer_to(fleet, record))
