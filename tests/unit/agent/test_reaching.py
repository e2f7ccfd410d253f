"""The question to the GPU driver's library, asked by a Python of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pretended_gpu import a_cuda

from fleet_agent.drivers.common import reaching
from fleet_agent.drivers.common.reaching import UNREACHED, UNREACHED_STATUS, check_of
from fleet_agent.drivers.native.inside.reaching import insist
from fleet_contracts.workloads import Resources


ONE, TWO = Resources(devices=("GPU-a",)), Resources(devices=("GPU-a", "GPU-b"))


def asked(
    resources: Resources, cuda: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str]:
    """Return how the check ends where *cuda* is there, and what it says."""
    monkeypatch.setattr(reaching, "_SCRIPT", cuda + reaching._SCRIPT)
    done = subprocess.run(
        [sys.executable, *check_of(resources)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.strip()


@pytest.mark.parametrize(
    ("resources", "count"), [(ONE, 1), (ONE, 8), (TWO, 2)], ids=str
)
def test_gpus_that_are_there_are_reached(
    resources: Resources, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as were asked for, or more: a container may see others' as well."""
    assert asked(resources, a_cuda(count=count), monkeypatch) == (0, "")


@pytest.mark.parametrize(
    ("resources", "cuda", "why"),
    [
        (ONE, a_cuda(version="libcuda.so.9"), "there is no libcuda.so.1 of 1"),
        (ONE, a_cuda(status=100), "cuInit says 100 of 1"),
        (ONE, a_cuda(count=0), "0 found of 1"),
        (TWO, a_cuda(count=1), "1 found of 2"),
    ],
)
def test_gpus_that_are_not_there_are_told_in_words_for_the_operator(
    resources: Resources, cuda: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No library, no device, or fewer than were asked for."""
    status, said = asked(resources, cuda, monkeypatch)
    assert status == UNREACHED_STATUS
    assert said == f"{UNREACHED}: {why} asked for"


def test_work_without_devices_is_asked_nothing() -> None:
    """A CPU class, and a Mac's GPU, which has no such library."""
    assert check_of(Resources()) == ()
    assert check_of(Resources(metal=True)) == ()


def test_a_process_that_must_not_begin_ends_as_its_check_did() -> None:
    """With the variables that the server would get, and not otherwise."""
    check = ["-c", "import os, sys; sys.exit(int(os.environ['ENDS_WITH']))"]
    insist(check, {"ENDS_WITH": "0"})
    with pytest.raises(SystemExit) as ended:
        insist(check, {"ENDS_WITH": "71"})
    assert ended.value.code == UNREACHED_STATUS
