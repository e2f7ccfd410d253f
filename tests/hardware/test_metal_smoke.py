"""On a Mac with Apple Silicon: its GPU is seen, and computes for a notebook.

Needs no network and no framework: the system's Metal alone.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hardware_kernel import a_kernel, cell, run_cell

from fleet_contracts.capabilities import AcceleratorDevice, WorkerCapabilities
from fleet_contracts.placement_facts import placement_facts


pytestmark = [pytest.mark.hardware, pytest.mark.timeout(300)]


def test_the_probe_sees_the_one_device(
    picture: WorkerCapabilities, metal_device: AcceleratorDevice
) -> None:
    """A Mac has exactly one Metal device, and its architecture is arm64."""
    assert metal_device.index == 0
    assert len(picture.accelerators) == 1
    assert picture.host.architecture.value == "arm64"
    virtual = picture.host.virtual_machine.value
    assert placement_facts(picture).devices[0].usable is (virtual is not True)


def test_a_notebook_computes_on_it(
    metal_device: AcceleratorDevice, tmp_path: Path
) -> None:
    """The GPU writes what a kernel tells it to write."""
    with a_kernel({}, tmp_path) as kernel:
        seen = json.loads(run_cell(kernel, cell("metal_runtime")))

    assert seen["filled"] is True
    assert metal_device.name is None or metal_device.name == seen["name"]
