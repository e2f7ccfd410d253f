"""The support matrix says no more than its evidence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleet_contracts.support import (
    INDEPENDENT,
    SCHEDULED,
    Scope,
    SupportLevel,
    is_scheduled,
    level,
)
from fleet_contracts.workloads import Accelerator, DriverName


ROOT = Path(__file__).parents[3]
EVIDENCE: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(
    (ROOT / "docs" / "support-evidence.yaml").read_text("utf-8")
)
CELLS = [(accelerator, driver) for accelerator in Accelerator for driver in DriverName]
NEEDS = {
    SupportLevel.TESTED: "tests",
    SupportLevel.HARDWARE_VALIDATED: "runs",
    SupportLevel.IMPLEMENTED: "code",
    SupportLevel.DETECTION_ONLY: "code",
    SupportLevel.UNSUPPORTED: "remark",
}


@pytest.mark.parametrize(("accelerator", "driver"), CELLS)
def test_the_table_and_its_evidence_agree(
    accelerator: Accelerator, driver: DriverName
) -> None:
    """A level changes only together with what it rests on."""
    assert EVIDENCE[accelerator][driver]["level"] == INDEPENDENT[accelerator][driver]


@pytest.mark.parametrize(("accelerator", "driver"), CELLS)
def test_a_level_names_what_it_rests_on(
    accelerator: Accelerator, driver: DriverName
) -> None:
    """Tested names tests that CI runs, and implemented the code; all of it exists."""
    cell = EVIDENCE[accelerator][driver]
    named = cell.get(NEEDS[level(accelerator, driver)])

    assert named
    for kind in ("tests", "code", "runs"):
        for path in cell.get(kind, ()):
            assert (ROOT / path).is_file(), path


@pytest.mark.parametrize(
    "path",
    sorted(
        {
            path
            for row in EVIDENCE.values()
            for cell in row.values()
            for path in cell.get("tests", ())
        }
    ),
)
def test_evidence_of_a_test_is_a_test(path: str) -> None:
    """A file that holds no test, or one that CI skips, is no evidence."""
    source = (ROOT / path).read_text("utf-8")

    assert re.search(r"^(async )?def test_", source, re.MULTILINE)
    assert not path.startswith("tests/hardware/")
    assert "pytest.mark.hardware" not in source


def test_nothing_distributed_is_supported() -> None:
    """No workload spans several processes or machines yet."""
    assert {level(*cell, Scope.DISTRIBUTED) for cell in CELLS} == {
        SupportLevel.UNSUPPORTED
    }


def test_what_only_is_detected_is_never_scheduled() -> None:
    """Placement may choose what is tested, validated or implemented, and no more."""
    assert not any(is_scheduled(Accelerator.ROCM, driver) for driver in DriverName)
    assert SupportLevel.DETECTION_ONLY not in SCHEDULED
    assert SupportLevel.UNSUPPORTED not in SCHEDULED
    assert is_scheduled(Accelerator.CPU, DriverName.NATIVE)


def test_a_word_that_nobody_knows_is_unsupported() -> None:
    """A newer peer's accelerator or driver is refused, and does not raise."""
    assert level("tpu", DriverName.NATIVE) is SupportLevel.UNSUPPORTED
    assert level(Accelerator.CPU, "firecracker") is SupportLevel.UNSUPPORTED
    assert level("cpu", "native", "interplanetary") is SupportLevel.UNSUPPORTED
