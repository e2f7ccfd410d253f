"""On a machine with an NVIDIA GPU: it is seen, held by UUID, and computes.

Needs no network, no toolkit and no framework: the GPU driver alone.  The last test
needs a notebook environment, which an earlier run with a network has built.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_hub import FakeHub
from hardware_kernel import a_kernel, cell, run_cell
from native_machine import TOKEN, a_notebook, last_handle, native_settings, unheard
from notebook_client import Kernel, NotebookServer

from fleet_agent.drivers.base import DriverError, Job
from fleet_agent.drivers.native.driver import NativeDriver
from fleet_contracts.capabilities import AcceleratorDevice, WorkerCapabilities
from fleet_contracts.devices import visible_devices
from fleet_contracts.placement_facts import placement_facts
from fleet_contracts.workloads import Accelerator, Resources


pytestmark = [pytest.mark.hardware, pytest.mark.timeout(300)]


def seen_in_a_kernel(resources: Resources, folder: Path) -> dict[str, Any]:
    """Return what a notebook's kernel that holds *resources* sees and computes."""
    environment = {"CUDA_VISIBLE_DEVICES": visible_devices(resources)}
    with a_kernel(environment, folder) as kernel:
        seen: dict[str, Any] = json.loads(run_cell(kernel, cell("cuda_driver")))
        return seen


def test_the_probe_sees_a_device_that_can_be_placed_on(
    picture: WorkerCapabilities, cuda_device: AcceleratorDevice
) -> None:
    """Name, UUID and driver are known, and placement may hand it out."""
    assert cuda_device.name
    assert cuda_device.uuid is not None
    assert cuda_device.uuid.startswith("GPU-")
    assert cuda_device.driver_version
    assert cuda_device.healthy is True
    assert any(
        device.usable and device.uuid == cuda_device.uuid
        for device in placement_facts(picture).devices
    )


def test_a_gpu_notebook_computes_on_exactly_its_device(
    cuda_device: AcceleratorDevice, tmp_path: Path
) -> None:
    """A kernel sees the one device that it holds, by UUID, and the result is right."""
    assert cuda_device.uuid is not None
    seen = seen_in_a_kernel(Resources(devices=(cuda_device.uuid,)), tmp_path)

    assert seen["variable"] == cuda_device.uuid
    assert [uuid.lower() for uuid in seen["uuids"]] == [cuda_device.uuid.lower()]
    assert seen["squares"] is True


def test_a_cpu_notebook_sees_no_device(
    cuda_device: AcceleratorDevice,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The variable is there and empty, whatever the agent itself was given."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", str(cuda_device.uuid))
    seen = seen_in_a_kernel(Resources(), tmp_path)

    assert seen == {"variable": "", "uuids": [], "squares": None}


@pytest.mark.sandbox
@pytest.mark.asyncio
async def test_a_gpu_notebook_in_its_sandbox_computes_on_its_device(
    cuda_device: AcceleratorDevice, tmp_path: Path
) -> None:
    """The native driver hands in the device's nodes, and no other device is seen."""
    assert cuda_device.uuid is not None
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    driver = NativeDriver(native_settings(tmp_path / "agent"))
    async with FakeHub() as hub:
        spec = a_notebook(hub, resources=Resources(devices=(cuda_device.uuid,)))
        runtime = spec.runtime.model_copy(update={"accelerator": Accelerator.CUDA})
        job = Job(
            allocation="gpu",
            epoch=1,
            spec=spec.model_copy(update={"runtime": runtime}),
        )
        try:
            await driver.prepare(job, unheard)
        except DriverError as error:
            pytest.skip(f"the notebook's environment cannot be built here: {error}")
        handle = await last_handle(driver, job)
        try:
            async with Kernel(NotebookServer(handle.url or "", TOKEN)) as kernel:
                seen = json.loads(await kernel.run(cell("cuda_driver")))
        finally:
            await driver.stop(handle, grace_seconds=0)
            await driver.close()

    assert seen["variable"] == cuda_device.uuid
    assert len(seen["uuids"]) == 1
    assert seen["squares"] is True
