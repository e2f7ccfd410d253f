"""What do a notebook server's exit code and the end of its log say?  Pure."""

from __future__ import annotations

from collections.abc import Iterable

from fleet_contracts.reasons import Explanation, Reason


KILLED = 137
_TERMINATED = 143
_SIGNALS = 128

Words = tuple[str, Reason, str]
"""Words of a log, and what they mean."""

_KNOWN: tuple[Words, ...] = (
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
)
"""Words of our own dependencies' logs.  The log itself is never passed on: it may hold
secrets."""


def why_it_ended(
    exit_code: int | None, log: str, known: Iterable[Words] = ()
) -> Explanation:
    """Return why a server that nobody stopped is gone; *known* are a driver's words."""
    if exit_code not in (None, 0, KILLED, _TERMINATED):
        # A known word counts only when the server failed: it may be an old complaint.
        for words, reason, sentence in (*_KNOWN, *known):
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
