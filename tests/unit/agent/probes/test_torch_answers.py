"""torch is believed only after it has computed, and it never denies hardware."""

from __future__ import annotations

import json
from typing import Any

import pytest
from probe_cases import a_run

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.interpret import interpret
from fleet_contracts.capabilities import ProbeStatus, TorchFacts


VERSIONS = {
    "stage": "versions",
    "version": "2.5.1+cu124",
    "cuda": "12.4",
    "hip": None,
    "cuda_built": True,
    "mps_built": False,
    "backends": ["gloo", "nccl"],
}
AVAILABLE = {"stage": "availability", "cuda_available": True, "mps_available": False}
STARTED = {"stage": "started", "python": "3.11.7", "executable": "/env/bin/python"}
IMPORTED = {"stage": "imported"}
LISTED = {"stage": "devices", "devices": [{"index": 0, "name": "NVIDIA H100"}]}
TRYING = {"stage": "trying", "device": "cuda:0"}
DONE = {"stage": "done"}


def steps(*said: dict[str, Any], **facts: Any) -> Answer:
    """Return the conclusion from our script's steps."""
    text = "".join(f"##PROBE##{json.dumps(step)}\n" for step in said)
    return interpret(a_run("torch-probe", stdout=text, **facts))


def torch(answer: Answer) -> TorchFacts:
    """Return what an answer says about torch."""
    assert answer.torch is not None
    return answer.torch


def an_operation(*, ok: bool, error: str | None = None) -> dict[str, Any]:
    """Return the step of an operation on the first CUDA device."""
    step = {"stage": "operation", "device": "cuda:0", "ok": ok}
    return step if error is None else step | {"error": error}


def test_an_operation_that_succeeds_is_the_proof() -> None:
    """torch.cuda is true once the device has computed."""
    answer = steps(
        STARTED,
        IMPORTED,
        VERSIONS,
        AVAILABLE,
        LISTED,
        TRYING,
        an_operation(ok=True),
        DONE,
    )

    assert answer.status is ProbeStatus.OK
    assert torch(answer).cuda is True
    assert torch(answer).mps is False
    assert torch(answer).distributed_backends == ("gloo", "nccl")
    assert answer.devices == ()


def test_an_operation_that_fails_is_evidence_against() -> None:
    """Being available is no proof: a build without this card's kernels says so too."""
    failed = an_operation(
        ok=False, error="RuntimeError: CUDA error: no kernel image is available"
    )
    answer = steps(STARTED, IMPORTED, VERSIONS, AVAILABLE, LISTED, TRYING, failed, DONE)

    assert (answer.status, answer.reason) == (
        ProbeStatus.OK_WITH_WARNINGS,
        "arch_not_in_build",
    )
    assert torch(answer).cuda_available is True
    assert torch(answer).cuda is False


def test_a_crash_keeps_what_was_said_before() -> None:
    """The last step tells an import that crashed from a device that did."""
    before = steps(STARTED, exit_code=-4)
    during = steps(
        STARTED, IMPORTED, VERSIONS, AVAILABLE, LISTED, TRYING, exit_code=-11
    )

    assert (before.status, before.reason) == (ProbeStatus.CRASH, "killed_by_sigill")
    assert torch(before).version is None
    assert torch(before).cuda is False
    assert torch(during).version == "2.5.1+cu124"
    assert torch(during).cuda is False
    assert torch(during).mps is False


def test_a_hang_leaves_the_question_open() -> None:
    """A device that did not come back in time is not known to be unable."""
    answer = steps(
        STARTED,
        IMPORTED,
        VERSIONS,
        AVAILABLE,
        LISTED,
        TRYING,
        exit_code=None,
        timed_out=True,
    )

    assert answer.status is ProbeStatus.TIMEOUT
    assert torch(answer).cuda is None
    assert torch(answer).cuda_available is True


def test_an_environment_without_torch_can_do_neither() -> None:
    """No torch is a fact about the environment, and no fault."""
    answer = steps(STARTED, {"stage": "absent"})

    assert (answer.status, answer.reason) == (
        ProbeStatus.TOOL_ABSENT,
        "torch_not_installed",
    )
    assert (torch(answer).cuda, torch(answer).mps) == (False, False)


def test_rocm_is_not_cuda() -> None:
    """Through torch an AMD card looks like CUDA 9.0; the build says what it is."""
    hip = VERSIONS | {"version": "2.5.1+rocm6.2", "cuda": None, "hip": "6.2.41133"}
    listed = {
        "stage": "devices",
        "devices": [
            {
                "index": 0,
                "name": "AMD Instinct MI210",
                "memory_mib": 65520,
                "major": 9,
                "minor": 0,
                "architecture": "gfx90a",
            }
        ],
    }
    answer = steps(
        STARTED, IMPORTED, hip, AVAILABLE, listed, TRYING, an_operation(ok=True), DONE
    )

    assert torch(answer).cuda is False
    assert torch(answer).cuda_built is False
    [device] = answer.devices
    assert device.accelerator == "rocm"
    assert device.compute_capability is None
    assert device.execution_supported is False


def test_noise_on_standard_error_is_no_failure() -> None:
    """A banner may hold the word Traceback although the import succeeded."""
    noise = "A module that was compiled using NumPy 1.x …\nTraceback (most recent call last):\n"
    answer = steps(STARTED, IMPORTED, VERSIONS, AVAILABLE, LISTED, DONE, stderr=noise)

    assert (answer.status, answer.reason) == (
        ProbeStatus.OK_WITH_WARNINGS,
        "import_noise",
    )


@pytest.mark.parametrize("cut", [5, 20, 60])
def test_a_step_that_was_cut_is_no_step(cut: int) -> None:
    """A line that ends in the middle is ignored; the whole ones before it stand."""
    whole = f"##PROBE##{json.dumps(STARTED)}\n##PROBE##{json.dumps(VERSIONS)}\n"
    answer = interpret(
        a_run("torch-probe", stdout=whole[:-cut], exit_code=None, timed_out=True)
    )

    assert answer.status is ProbeStatus.TIMEOUT
    assert torch(answer).interpreter == "/env/bin/python"
    assert torch(answer).version is None


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("Error 802: system not yet initialized", "fabric_manager_missing"),
        ("Error 804: forward compatibility was attempted", "cuda_forward_compat"),
        (
            "CUDA initialization: Found no NVIDIA driver on your system",
            "driver_not_found",
        ),
        (
            "CUDA initialization: The NVIDIA driver on your system is too old",
            "driver_too_old",
        ),
    ],
)
def test_a_lone_false_is_explained_by_its_warning(stderr: str, reason: str) -> None:
    """The value says that it cannot, and only the warning says why."""
    answer = interpret(a_run("torch-probe", stdout="False\n", stderr=stderr))

    assert answer.reason == reason
    assert torch(answer).cuda is False


@pytest.mark.parametrize(
    ("version", "built"),
    [
        ("2.5.1+cu124", True),
        ("2.5.1+cpu", False),
        ("2.5.1+rocm6.2", False),
        ("2.5.1", None),
    ],
)
def test_a_build_is_known_by_its_local_version_or_not_at_all(
    version: str, *, built: bool | None
) -> None:
    """A plain version does not tell for what a wheel was built."""
    answer = interpret(a_run("torch-probe", stdout=f"PyTorch version: {version}\n"))

    assert torch(answer).version == version
    assert torch(answer).cuda_built is built


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            {"torch": "2.5.1+cu124", "cuda": "12.4", "hip": None, "available": True},
            {"cuda_built": True, "cuda_available": True, "hip_version": None},
        ),
        (
            {"torch": "2.5.1", "cuda": None, "hip": "6.2.41133", "available": True},
            {"cuda_built": False, "cuda_available": True, "hip_version": "6.2.41133"},
        ),
        (
            {"version": "2.6.0", "cuda_available": False, "backends": ["gloo"]},
            {"cuda_available": False, "distributed_backends": ("gloo",)},
        ),
        (
            {"torch": "2.6.0", "mps_built": True, "mps": True},
            {"mps_built": True, "mps_available": True},
        ),
    ],
)
def test_other_probes_json_is_understood(
    said: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Whatever a probe calls its members, their form tells what they are."""
    answer = interpret(a_run("torch-probe", stdout=json.dumps(said)))

    assert {name: getattr(torch(answer), name) for name in expected} == expected
