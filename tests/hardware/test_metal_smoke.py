"""On a Mac with Apple Silicon: its GPU is seen, and computes for a notebook.

Needs no network and no framework: the system's Metal alone.  With
FLEET_TORCH_PYTHON, a Python that has torch, it also tries the probe of the fence.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hardware_kernel import a_kernel, cell, run_cell
from native_machine import native_settings

from fleet_agent.drivers.native.macos.driver import MacDriver
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


@pytest.mark.asyncio
async def test_whether_the_sandbox_keeps_notebooks_from_it_can_be_seen(
    metal_device: AcceleratorDevice, tmp_path: Path
) -> None:
    """A yes or a no, either is fine; doubt means that the probe does not work here."""
    python = os.environ.get("FLEET_TORCH_PYTHON")
    if python is None:
        pytest.skip("FLEET_TORCH_PYTHON names no Python with torch")
    settings = native_settings(tmp_path, uids=None, fence_python=Path(python))

    found = await MacDriver(settings).probe_fence("the build under test")

    assert metal_device is not None
    assert found.holds is not None, found.reason
