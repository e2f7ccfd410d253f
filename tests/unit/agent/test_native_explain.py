"""Why a server ended, in one sentence that holds nothing of its log."""

from __future__ import annotations

import pytest

from fleet_agent.drivers.native.explain import Memory, why_it_ended
from fleet_contracts.reasons import Reason


SECRET = "token=6f1c"


@pytest.mark.parametrize(
    ("exit_code", "log", "memory", "reason", "words"),
    [
        (0, "", Memory.ENOUGH, Reason.SERVER_EXITED, "ended by itself"),
        (1, "", Memory.ENOUGH, Reason.SERVER_EXITED, "exit code 1"),
        (139, "", Memory.ENOUGH, Reason.SERVER_EXITED, "signal 11"),
        (137, "", Memory.MACHINE_RAN_OUT, Reason.OUT_OF_MEMORY, "The machine ran out"),
        (137, "", Memory.CLASS_RAN_OUT, Reason.OUT_OF_MEMORY, "memory of its class"),
        (137, "", Memory.ENOUGH, Reason.SERVER_EXITED, "signal 9"),
        (0, "", Memory.MACHINE_RAN_OUT, Reason.SERVER_EXITED, "by itself"),
        (None, "", Memory.MACHINE_RAN_OUT, Reason.SERVER_EXITED, "from outside"),
        (1, "No space left on device", Memory.ENOUGH, Reason.DISK_FULL, "disk"),
        (
            1,
            "Failed to connect to my Hub at",
            Memory.ENOUGH,
            Reason.SERVER_EXITED,
            "Hub",
        ),
        (2, "Bad config encountered", Memory.ENOUGH, Reason.SERVER_EXITED, ".jupyter"),
        (
            71,
            "fleet: the GPU cannot be reached: cuInit says 100 of 1 asked for",
            Memory.ENOUGH,
            Reason.ACCELERATOR_NOT_USED,
            "fewer GPUs than were asked for",
        ),
        (1, "bwrap: Can't", Memory.ENOUGH, Reason.START_FAILED, "sandbox"),
        # An old complaint of a server that was then ended says nothing.
        (
            143,
            "No space left on device",
            Memory.ENOUGH,
            Reason.SERVER_EXITED,
            "signal 15",
        ),
    ],
)
def test_every_end_has_a_code_and_a_sentence(
    exit_code: int | None, log: str, memory: Memory, reason: Reason, words: str
) -> None:
    """The sentence is ours; the log stays with the operator."""
    explanation = why_it_ended(exit_code, f"{SECRET} {log} {SECRET}", memory=memory)

    assert explanation.reason is reason
    assert words in (explanation.detail or "")
    assert SECRET not in (explanation.detail or "")
