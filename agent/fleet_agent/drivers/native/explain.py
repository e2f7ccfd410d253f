"""Why did a notebook server end?  Pure: from its exit code and the end of its log."""

from __future__ import annotations

from fleet_contracts.reasons import Explanation, Reason


_KILLED = 137
_TERMINATED = 143
_SIGNALS = 128

_KNOWN = (
    (
        "No space left on device",
        Reason.DISK_FULL,
        "The notebook server ended because the machine's disk is full.",
    ),
    (
        "Failed to connect to my Hub at",
        Reason.SERVER_EXITED,
        "The notebook server could not reach the Hub from this machine, so it ended.",
    ),
    (
        "Bad config encountered",
        Reason.SERVER_EXITED,
        (
            "The notebook server ended because its configuration is wrong. Look at the "
            "files in the .jupyter folder of your notebook folder."
        ),
    ),
    (
        "bwrap: ",
        Reason.START_FAILED,
        "The sandbox for the notebook could not be set up on this machine.",
    ),
)
"""Words of our own dependencies' logs, and what they mean.  The log itself is never
passed on: it may hold secrets."""


def why_it_ended(
    exit_code: int | None, log: str, *, memory_ran_out: bool
) -> Explanation:
    """Return why a server that nobody stopped is gone."""
    if exit_code == _KILLED and memory_ran_out:
        return Explanation(
            reason=Reason.OUT_OF_MEMORY,
            detail="The machine ran out of memory and its kernel ended the notebook. "
            "The files are kept.",
        )
    if exit_code not in (None, 0, _KILLED, _TERMINATED):
        # A known word counts only when the server failed: it may be an old complaint.
        for words, reason, sentence in _KNOWN:
            if words in log:
                return Explanation(reason=reason, detail=sentence)
    return Explanation(reason=Reason.SERVER_EXITED, detail=_how(exit_code))


def _how(exit_code: int | None) -> str:
    if exit_code is None:
        return "The notebook was ended from outside."
    if exit_code == 0:
        return "The notebook server ended by itself."
    if exit_code > _SIGNALS:
        return f"The notebook server was ended by signal {exit_code - _SIGNALS}."
    return f"The notebook server failed with exit code {exit_code}."
