"""What the hardware tests share: the real picture of this machine."""

from __future__ import annotations

import asyncio

import pytest

from fleet_agent.probes.detect import detect
from fleet_agent.probes.settings import DetectSettings
from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    ProbeReport,
    WorkerCapabilities,
)


@pytest.fixture(scope="session")
def picture(tmp_path_factory: pytest.TempPathFactory) -> WorkerCapabilities:
    """Return what the probes say about this machine."""
    state = tmp_path_factory.mktemp("state")
    return asyncio.run(detect(DetectSettings(state_dir=str(state))))


def _report(picture: WorkerCapabilities, name: str) -> ProbeReport | None:
    return next((item for item in picture.probes if item.probe == name), None)


@pytest.fixture
def cuda_device(picture: WorkerCapabilities) -> AcceleratorDevice:
    """Return the first usable NVIDIA device, or skip with what the probe said."""
    for device in picture.accelerators:
        if device.accelerator is DeviceKind.CUDA and device.execution_supported:
            return device
    report = _report(picture, "nvidia")
    reason = report.reason if report else "nvidia-smi was not asked"
    pytest.skip(f"this machine has no usable NVIDIA GPU: {reason}")


@pytest.fixture
def metal_device(picture: WorkerCapabilities) -> AcceleratorDevice:
    """Return the Mac's GPU, or skip where this is no Mac with Apple Silicon."""
    for device in picture.accelerators:
        if device.accelerator is DeviceKind.MPS:
            return device
    pytest.skip(f"this is no Mac with Apple Silicon: it runs {picture.host.os.value}")
