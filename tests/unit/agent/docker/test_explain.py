"""The engine's words become a code and a sentence, and are not passed on."""

from __future__ import annotations

import pytest

from fleet_agent.drivers.base import Condition, Standing
from fleet_agent.drivers.docker import explain
from fleet_agent.drivers.docker.explain import End, why_it_ended, without_secrets
from fleet_contracts.reasons import Reason


REF = "registry.example.org/team/lab:1"


@pytest.mark.parametrize(
    ("words", "reason", "sign"),
    [
        (
            f"manifest for {REF} not found: manifest unknown: manifest unknown",
            Reason.PREPARE_FAILED,
            "does not exist in its registry",
        ),
        (
            (
                f"pull access denied for {REF}, repository does not exist or may require "
                "'docker login': denied: requested access to the resource is denied"
            ),
            Reason.PREPARE_FAILED,
            "does not give",
        ),
        (
            "toomanyrequests: You have reached your pull rate limit.",
            Reason.PREPARE_FAILED,
            "asked too often",
        ),
        (
            "no matching manifest for linux/arm64/v8 in the manifest list entries",
            Reason.PREPARE_FAILED,
            "kind of processor",
        ),
        (
            (
                "Get https://registry.example.org/v2/: dial tcp: lookup "
                "registry.example.org: no such host"
            ),
            Reason.PREPARE_FAILED,
            "cannot be reached",
        ),
        (
            "filesystem layer verification failed for digest sha256:1",
            Reason.PREPARE_FAILED,
            "not the image that the catalog names",
        ),
        (
            "failed to register layer: write /x: no space left on device",
            Reason.DISK_FULL,
            "disk is full",
        ),
        ("invalid reference format", Reason.PREPARE_FAILED, "is not valid"),
        (
            "Get https://registry.example.org/v2/: x509: certificate signed by unknown",
            Reason.PREPARE_FAILED,
            "does not trust",
        ),
        ("something new", Reason.PREPARE_FAILED, "could not be fetched"),
    ],
)
def test_a_failed_pull_is_told_without_its_image(
    words: str, reason: Reason, sign: str
) -> None:
    """The operator has the engine's words, the user a sentence with whom to ask."""
    error = explain.pull_failure(words)

    assert error.explanation.reason is reason
    assert sign in (error.explanation.detail or "")
    assert "example.org" not in (error.explanation.detail or "")
    assert words in str(error)


@pytest.mark.parametrize(
    ("words", "reason", "sign"),
    [
        (
            (
                'OCI runtime create failed: exec: "jupyterhub-singleuser": executable file '
                "not found in $PATH: unknown"
            ),
            Reason.START_FAILED,
            "no program",
        ),
        (
            "Bind for 127.0.0.1:20000 failed: port is already allocated",
            Reason.PORT_TAKEN,
            "no free network port",
        ),
        (
            'could not select device driver "nvidia" with capabilities: [[gpu]]',
            Reason.ACCELERATOR_NOT_USED,
            "cannot hand out its GPUs",
        ),
        ("mkdir /x: no space left on device", Reason.DISK_FULL, "disk is full"),
        (f"No such image: {REF}", Reason.START_FAILED, "was removed"),
        (
            "could not find an available, non-overlapping IPv4 address pool",
            Reason.START_FAILED,
            "no network left",
        ),
        (
            "invalid mount config for type bind: bind source path does not exist: /srv",
            Reason.START_FAILED,
            "is not there",
        ),
        ("something new", Reason.START_FAILED, "did not start the notebook"),
    ],
)
def test_a_failed_start_is_told_without_its_image(
    words: str, reason: Reason, sign: str
) -> None:
    """As a failed pull is."""
    error = explain.start_failure(words)

    assert error.explanation.reason is reason
    assert sign in (error.explanation.detail or "")
    assert REF not in (error.explanation.detail or "")


def test_memory_that_ran_out_is_told_with_its_limit() -> None:
    """And only if that is what ended the server."""
    end = End(exit_code=137, out_of_memory=True, memory_bytes=2**30)

    told = why_it_ended(end, "", engine_restarted=False)
    other = why_it_ended(
        End(exit_code=1, out_of_memory=True), "", engine_restarted=False
    )

    assert (told.reason, told.requested, told.unit) == (
        Reason.OUT_OF_MEMORY,
        2**30,
        "bytes",
    )
    assert other.reason is Reason.SERVER_EXITED


@pytest.mark.parametrize(
    ("end", "log", "restarted", "sign"),
    [
        (End(removed=True), "", False, "removed from outside"),
        (End(removed=True), "", True, "engine on this machine was restarted"),
        (End(exit_code=0), "", True, "engine on this machine was restarted"),
        (End(exit_code=0), "", False, "ended by itself"),
        (End(exit_code=3), "", False, "exit code 3"),
        (End(exit_code=143), "", False, "signal 15"),
        (End(exit_code=1), "OSError: Read-only file system", False, "its own files"),
        (End(exit_code=1), "Failed to connect to my Hub at", False, "reach the Hub"),
        (End(exit_code=127), "exec x: No such file or directory", False, "missing"),
        (End(exit_code=1), "exec /x: exec format error", False, "processor"),
    ],
)
def test_every_end_has_its_sentence(
    end: End, log: str, restarted: bool, sign: str
) -> None:
    """From the exit code, the end of the log and what happened to the engine."""
    told = why_it_ended(end, log, engine_restarted=restarted)

    assert sign in (told.detail or "")


def test_an_end_before_the_first_answer_always_has_a_sentence() -> None:
    """Even where the code alone says everything afterwards."""
    condition = Condition(
        standing=Standing.GONE,
        explanation=why_it_ended(
            End(exit_code=137, out_of_memory=True), "", engine_restarted=False
        ),
    )

    error = explain.early_end(condition, "the log")

    assert error.explanation.reason is Reason.OUT_OF_MEMORY
    assert error.explanation.detail
    assert "the log" in str(error)


def test_secrets_are_cut_out_of_a_log() -> None:
    """By the names of the variables that hold them; short words are no secrets."""
    environment = ["JUPYTERHUB_API_TOKEN=abcdef123", "KEY=1", "HOME=/home/jovyan"]

    told = without_secrets("GET /home/jovyan?token=abcdef123 1", environment)

    assert told == "GET /home/jovyan?token=… 1"


@pytest.mark.parametrize("status", ["removing", "dead"])
def test_a_removal_by_force_is_no_end_by_a_signal(status: str) -> None:
    """The engine tells of the signal first, and of the removal in the state."""
    end = End.from_answer({"State": {"Status": status, "ExitCode": 137}})

    why = why_it_ended(end, "", engine_restarted=False)

    assert "removed from outside" in (why.detail or "")
