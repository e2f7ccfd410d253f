"""What does the engine mean?  Pure: from its words to a code and a sentence.

The engine's own words name images, registries and paths, which are for operators.  A
user gets one of the sentences below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fleet_agent.drivers.base import Condition, DriverError
from fleet_agent.drivers.common import server_logs
from fleet_contracts.reasons import Explanation, Reason


_Meaning = tuple[tuple[str, ...], Reason, str]

_ADMIN = "Tell the person who keeps the catalog."
_OWNER = "Tell the person who runs this machine."

_PULLS: tuple[_Meaning, ...] = (
    (
        ("no space left on device",),
        Reason.DISK_FULL,
        "The machine's disk is full, so the runtime's image could not be fetched.",
    ),
    (
        ("toomanyrequests", "too many requests", "rate limit"),
        Reason.PREPARE_FAILED,
        (
            "The registry of the runtime's image has been asked too often by this "
            "machine. Try again later."
        ),
    ),
    (
        ("no matching manifest", "does not match the specified platform"),
        Reason.PREPARE_FAILED,
        "There is no image of this runtime for this machine's kind of processor. "
        + _ADMIN,
    ),
    (
        ("verification failed", "unexpected digest", "digest invalid", "did not match"),
        Reason.PREPARE_FAILED,
        "What the registry sent is not the image that the catalog names. " + _ADMIN,
    ),
    (
        ("pull access denied", "unauthorized", "denied:", "authentication required"),
        Reason.PREPARE_FAILED,
        "The registry does not give the runtime's image to this machine: it does not "
        "exist there, or this machine has no access. " + _ADMIN,
    ),
    (
        ("manifest unknown", "manifest for", "not found", "repository does not exist"),
        Reason.PREPARE_FAILED,
        "The runtime's image does not exist in its registry. " + _ADMIN,
    ),
    (
        ("invalid reference format", "invalid repository name", "invalid tag"),
        Reason.PREPARE_FAILED,
        "The catalog's name for the runtime's image is not valid. " + _ADMIN,
    ),
    (
        ("x509", "certificate", "server gave http response to https client"),
        Reason.PREPARE_FAILED,
        "This machine does not trust the registry of the runtime's image. " + _OWNER,
    ),
    (
        (
            *("no such host", "connection refused", "i/o timeout", "unreachable"),
            *("server misbehaving", "handshake timeout", "deadline exceeded"),
            *("connection reset", "timeout exceeded", "eof"),
        ),
        Reason.PREPARE_FAILED,
        "The registry of the runtime's image cannot be reached from this machine.",
    ),
)

_STARTS: tuple[_Meaning, ...] = (
    (
        ("no space left on device",),
        Reason.DISK_FULL,
        "The machine's disk is full, so the notebook's container could not be made.",
    ),
    (
        ("port is already allocated", "address already in use", "ports are allocated"),
        Reason.PORT_TAKEN,
        "This machine has no free network port for the notebook server.",
    ),
    (
        ("no such image",),
        Reason.START_FAILED,
        (
            "The runtime's image was removed from this machine while the notebook "
            "started. Start again."
        ),
    ),
    (
        ("could not select device driver", "nvidia-container", "unknown device"),
        Reason.ACCELERATOR_NOT_USED,
        "The container engine on this machine cannot hand out its GPUs. " + _OWNER,
    ),
    (
        ("executable file not found", "no such file or directory: unknown"),
        Reason.START_FAILED,
        "The runtime's image has no program to start a notebook server with "
        "(jupyterhub-singleuser). " + _ADMIN,
    ),
    (
        ("exec format error",),
        Reason.START_FAILED,
        "The runtime's image is for another kind of processor. " + _ADMIN,
    ),
    (
        ("available, pool", "non-overlapping", "could not find an available"),
        Reason.START_FAILED,
        "The container engine on this machine has no network left for notebooks. "
        + _OWNER,
    ),
    (
        ("bind source path does not exist",),
        Reason.START_FAILED,
        "A folder that this machine gives every notebook is not there. " + _OWNER,
    ),
)

_LOGS: tuple[server_logs.Words, ...] = (
    (
        "exec format error",
        Reason.START_FAILED,
        "The runtime's image is for another kind of processor. " + _ADMIN,
    ),
    (
        "Read-only file system",
        Reason.START_FAILED,
        "The runtime's image changes its own files when it starts, which is not "
        "allowed. " + _ADMIN,
    ),
    (
        "No such file or directory",
        Reason.SERVER_EXITED,
        "The notebook server ended because something is missing in the runtime's "
        "image. " + _ADMIN,
    ),
)

_AWAY = (
    "The container engine on this machine does not answer. "
    "The machine's owner can start it."
)
_TOO_EARLY = "It ended before it answered."
_RESTARTED = (
    "The container engine on this machine was restarted, which ended the notebook. "
    "The files are kept."
)
_REMOVED = "The notebook's container was removed from outside. The files are kept."
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 6


def pull_failure(words: str) -> DriverError:
    """Return what a pull that ended with these *words* of the engine means."""
    reason, sentence = _meaning(
        words,
        _PULLS,
        Reason.PREPARE_FAILED,
        "The runtime's image could not be fetched. " + _ADMIN,
    )
    return DriverError(reason, f"the pull failed: {words}", detail=sentence)


def stalled_pull(seconds: float) -> DriverError:
    """Return what it means that nothing came of a pull for so long."""
    return DriverError(
        Reason.PREPARE_FAILED,
        f"the registry sent nothing for {seconds:.0f} s",
        detail="The registry of the runtime's image stopped sending. Try again later.",
    )


def start_failure(words: str) -> DriverError:
    """Return what it means that the engine did not make or start a container."""
    reason, sentence = _meaning(
        words,
        _STARTS,
        Reason.START_FAILED,
        "The container engine on this machine did not start the notebook. " + _OWNER,
    )
    return DriverError(reason, f"the container did not start: {words}", detail=sentence)


def engine_away(reason: Reason, words: str) -> DriverError:
    """Return what it means that there is no engine to ask."""
    return DriverError(reason, f"the engine does not answer: {words}", detail=_AWAY)


def not_kept_in(words: str) -> DriverError:
    """Return what it means that containers cannot be kept out of private networks."""
    return DriverError(
        Reason.START_FAILED,
        f"the packet filter was not set: {words}",
        detail="This machine could not keep the notebook's container out of its "
        "private network, so it was not started. " + _OWNER,
    )


def cannot_run_here(problem: str) -> DriverError:
    """Return what it means that the engine is of a kind that cannot be used."""
    return DriverError(Reason.DRIVER_UNAVAILABLE, problem, detail=problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What the engine knows of a container that runs no more."""

    exit_code: int | None = None
    out_of_memory: bool = False
    removed: bool = False
    memory_bytes: int = 0
    error: str = ""
    """The engine's own words, for operators."""

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> End:
        """Return what the engine's description of a container says."""
        state = answer.get("State") or {}
        return cls(
            exit_code=state.get("ExitCode"),
            out_of_memory=bool(state.get("OOMKilled")),
            # Its removal by force begins with its end.
            removed=state.get("Status") in {"removing", "dead"},
            memory_bytes=int((answer.get("HostConfig") or {}).get("Memory") or 0),
            error=str(state.get("Error") or ""),
        )


def why_it_ended(end: End, log: str, *, engine_restarted: bool) -> Explanation:
    """Return why a container that nobody stopped is gone."""
    if end.out_of_memory and end.exit_code in {server_logs.KILLED, None}:
        return Explanation(
            reason=Reason.OUT_OF_MEMORY,
            requested=end.memory_bytes or None,
            unit="bytes",
        )
    if end.removed and not engine_restarted:
        return Explanation(reason=Reason.SERVER_EXITED, detail=_REMOVED)
    if engine_restarted:
        return Explanation(reason=Reason.SERVER_EXITED, detail=_RESTARTED)
    return server_logs.why_it_ended(end.exit_code, log, _LOGS)


def early_end(condition: Condition, log: str) -> DriverError:
    """Return what it means that a container ended before its server answered."""
    why = condition.explanation or Explanation(reason=Reason.SERVER_EXITED)
    error = DriverError(
        why.reason,
        f"the container ended with {condition.exit_code}; the log ends: {log}",
    )
    error.explanation = why.model_copy(update={"detail": why.detail or _TOO_EARLY})
    return error


def without_secrets(log: str, environment: Iterable[str]) -> str:
    """Return *log* without the values of the secret variables in *environment*.

    Even an operator's log must not hold what would let its reader be the user.
    """
    for item in environment:
        name, _, value = item.partition("=")
        if _SECRET.search(name) and len(value) >= _SHORTEST_SECRET:
            log = log.replace(value, "…")
    return log


def _meaning(
    words: str, table: tuple[_Meaning, ...], reason: Reason, sentence: str
) -> tuple[Reason, str]:
    lower = words.lower()
    for signs, known_reason, known_sentence in table:
        if any(sign in lower for sign in signs):
            return known_reason, known_sentence
    return reason, sentence
