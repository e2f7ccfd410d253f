"""What the simulation driver pretends: how slow things are, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """What goes wrong on purpose."""

    PREPARE_FAILS = "prepare_fails"
    PREPARE_HANGS = "prepare_hangs"
    START_FAILS = "start_fails"
    START_HANGS = "start_hangs"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How the pretended notebooks behave; all times are seconds."""

    prepare_seconds: float = 0.0
    start_seconds: float = 0.0
    run_seconds: float | None = None
    """How long a server runs before it ends by itself; None: until it is stopped."""
    stop_seconds: float = 0.0
    fault: Fault | None = None
    pause_at: Pause | None = None
