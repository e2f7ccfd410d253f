"""What the simulation driver pretends: how slow things are, and what goes wrong."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from fleet_contracts.base import Contract
from fleet_contracts.workloads import Seconds


class Fault(StrEnum):
    """What goes wrong on purpose."""

    PREPARE_FAILS = "prepare_fails"
    PREPARE_HANGS = "prepare_hangs"
    START_FAILS = "start_fails"
    START_HANGS = "start_hangs"
    SERVER_DIES_EARLY = "server_dies_early"
    """It ends by itself before it answers."""
    SERVER_CRASHES = "server_crashes"
    """It ends by itself after ``run_seconds``, with an exit status."""
    SERVER_IGNORES_STOP = "server_ignores_stop"
    STOP_FAILS_ONCE = "stop_fails_once"


class Pause(StrEnum):
    """Where the driver stops for ever, so that a test can kill the agent there."""

    PREPARING = "preparing"
    FOLDER_MADE = "folder_made"
    SPAWNED = "spawned"
    NAMED = "named"
    ANSWERING = "answering"
    ADDRESS_TOLD = "address_told"


class Behaviour(Contract):
    """How pretended notebooks behave."""

    prepare_seconds: Seconds = 0.0
    start_seconds: Seconds = 0.0
    run_seconds: Seconds | None = None
    """How long a server runs before it ends by itself; None: until it is stopped."""
    stop_seconds: Seconds = 0.0
    fault: Fault | None = None
    pause_at: Pause | None = None


class Simulation(Behaviour):
    """How all pretended notebooks behave, and those of some runtimes otherwise."""

    runtimes: dict[str, Behaviour] = Field(default_factory=dict)
    """By the runtime's ref in the catalog."""

    def of(self, ref: str) -> Behaviour:
        """Return how a notebook of the runtime with *ref* behaves."""
        return self.runtimes.get(ref, self)
