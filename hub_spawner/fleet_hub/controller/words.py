"""One plain sentence for the state of a workload now."""

from __future__ import annotations

from typing import Final

from fleet_contracts.allocations import State
from fleet_contracts.language import mark, say
from fleet_contracts.sentences import headline
from fleet_hub.controller.core import Core
from fleet_hub.controller.discretion import explanation_of
from fleet_hub.controller.records import Workload
from fleet_hub.controller.retelling import wait_of


TURN_HAS_COME: Final = mark(
    "Your turn has come: the server is about to start on {machine}."
)
STARTS_NOW: Final = mark("Starts now.")


def position_of(core: Core, record: Workload) -> int | None:
    """Return how many are ahead of *record*; None when it does not wait."""
    wait = wait_of(core, record)
    return wait.position if wait is not None else None


def headline_of(core: Core, record: Workload) -> str:
    """Return the sentence that every page shows first."""
    assignment = record.assignment
    machine = assignment.machine if assignment is not None else None
    if record.state is State.PLACED and assignment and not assignment.launched:
        return say(TURN_HAS_COME, machine=machine)
    wait = wait_of(core, record)
    return headline(
        record.state,
        explanation=wait.explanation
        if wait is not None
        else explanation_of(core, record),
        position=wait.position if wait is not None else None,
        machine=machine,
        parked=record.parked,
        now=core.clock.now(),
    )
