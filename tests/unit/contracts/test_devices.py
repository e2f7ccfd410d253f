"""Device holds: one holder for each GPU, and one for a Mac's GPU."""

from __future__ import annotations

import pytest

from fleet_contracts.devices import (
    device_conflict,
    held_here,
    reserves_metal,
    visible_devices,
)
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Accelerator, DriverName, Resources


@pytest.mark.parametrize(
    ("os", "driver", "accelerator", "expected"),
    [
        ("darwin", DriverName.NATIVE, Accelerator.CPU, True),
        ("darwin", DriverName.NATIVE, Accelerator.MPS, True),
        (None, DriverName.NATIVE, Accelerator.CPU, True),
        ("linux", DriverName.NATIVE, Accelerator.CPU, False),
        ("linux", DriverName.NATIVE, Accelerator.CUDA, False),
        ("darwin", DriverName.DOCKER, Accelerator.CPU, False),
        ("darwin", DriverName.SIMULATION, Accelerator.CPU, False),
        ("darwin", DriverName.SIMULATION, Accelerator.MPS, True),
    ],
)
def test_every_native_workload_on_a_mac_holds_its_gpu(
    os: str | None, driver: DriverName, accelerator: Accelerator, *, expected: bool
) -> None:
    """Asked for or not; a machine of unknown system counts as a Mac."""
    held = reserves_metal(os=os, driver=driver, accelerator=accelerator)
    assert held is expected


@pytest.mark.parametrize(
    ("wanted", "held", "expected"),
    [
        (Resources(metal=True), [Resources(metal=True)], Reason.METAL_BUSY),
        (Resources(metal=True), [Resources(devices=("a",))], None),
        (Resources(), [Resources(metal=True)], None),
        (Resources(devices=("a",)), [Resources(devices=("b", "a"))], Reason.GPU_BUSY),
        (Resources(devices=("a",)), [Resources(), Resources(devices=("b",))], None),
        (Resources(devices=("a",), metal=True), [], None),
    ],
)
def test_a_device_has_one_holder(
    wanted: Resources, held: list[Resources], expected: Reason | None
) -> None:
    """What somebody holds is not given to another, and nothing else is in the way."""
    found = device_conflict(wanted, held)
    assert (None if found is None else found.reason) is expected


def test_a_job_sees_its_own_gpus_by_uuid_and_a_cpu_job_sees_none() -> None:
    """An empty value hides all GPUs; a missing one would show them all."""
    assert visible_devices(Resources(devices=("GPU-b", "GPU-a"))) == "GPU-b,GPU-a"
    assert visible_devices(Resources(metal=True)) == ""


@pytest.mark.parametrize(
    ("os", "driver", "accelerator", "fenced", "expected"),
    [
        # The one row that shares.
        ("darwin", DriverName.NATIVE, Accelerator.CPU, True, False),
        ("darwin", DriverName.NATIVE, Accelerator.CPU, False, True),
        # What asked for the GPU holds it, and so does what nobody planned for.
        ("darwin", DriverName.NATIVE, Accelerator.MPS, True, True),
        ("darwin", DriverName.NATIVE, Accelerator.CUDA, True, True),
        ("darwin", DriverName.SIMULATION, Accelerator.MPS, True, True),
        # A machine that has not said what it is may be a Mac without a fence.
        (None, DriverName.NATIVE, Accelerator.CPU, True, True),
        # Elsewhere a fence means nothing.
        ("linux", DriverName.NATIVE, Accelerator.CPU, True, False),
        ("darwin", DriverName.DOCKER, Accelerator.CPU, True, False),
    ],
)
def test_behind_a_fence_that_holds_cpu_work_alone_holds_nothing(
    os: str | None,
    driver: DriverName,
    accelerator: Accelerator,
    *,
    fenced: bool,
    expected: bool,
) -> None:
    """Every other workload holds the GPU as before."""
    found = reserves_metal(os=os, driver=driver, accelerator=accelerator, fenced=fenced)
    assert found is expected


@pytest.mark.parametrize(
    ("os", "driver", "metal", "fenced", "expected"),
    [
        ("darwin", DriverName.NATIVE, False, False, True),
        ("darwin", DriverName.NATIVE, False, True, False),
        ("darwin", DriverName.NATIVE, True, True, True),
        ("darwin", DriverName.DOCKER, False, False, False),
        ("linux", DriverName.NATIVE, False, False, False),
        # Nothing was placed there without a hold, since nothing was known of it.
        (None, DriverName.NATIVE, False, False, False),
    ],
)
def test_what_shares_counts_as_a_holder_once_the_fence_is_in_doubt(
    os: str | None, driver: DriverName, *, metal: bool, fenced: bool, expected: bool
) -> None:
    """It runs on, and nobody else gets the GPU before it has ended."""
    resources = Resources(cpu_milli=1, metal=metal)
    found = held_here(resources, os=os, driver=driver, fenced=fenced)

    assert found == resources.model_copy(update={"metal": expected})
