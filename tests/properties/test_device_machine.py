"""The same lives on a Mac and a GPU machine: no device has two holders, ever."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from controller_catalogs import a_catalog
from controller_machine import CORES, SERVERS, ControllerMachine, FallibleStore
from fake_agent import some_capabilities
from fleet_builders import NOON
from fleet_controller import Fleet
from hypothesis import settings
from hypothesis.stateful import initialize, invariant, rule
from scheduling_builders import GIB

from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    Fact,
    HostFacts,
    MemoryKind,
    Observed,
    WorkerCapabilities,
)
from fleet_contracts.catalog import ResourceClass, Runtime
from fleet_contracts.workloads import Accelerator, DriverName


MAC, GPU_BOX = "small", "large"
"""What the machines of the other lives are here."""
GPUS = ("GPU-a", "GPU-b")
KINDS = tuple(
    Runtime(
        name=accelerator.value,
        accelerators=(accelerator,),
        driver_refs={DriverName.NATIVE: "a-ref"},
    )
    for accelerator in (Accelerator.CPU, Accelerator.CUDA, Accelerator.MPS)
)


def _class(name: str, accelerator: Accelerator, limit: int) -> ResourceClass:
    return ResourceClass(
        name=name,
        title=name,
        cpu_milli=1000,
        memory_bytes=GIB,
        accelerator=accelerator,
        devices=accelerator is not Accelerator.CPU,
        limit_seconds=limit,
    )


BASE = a_catalog()
CATALOG = BASE.model_copy(
    update={
        "classes": (
            _class("small", Accelerator.CPU, 600),
            _class("whole", Accelerator.CUDA, 1800),
            _class("metal", Accelerator.MPS, 900),
        ),
        "runtimes": KINDS,
        "profiles": (
            BASE.profiles[0].model_copy(
                update={
                    "classes": ("small", "whole", "metal"),
                    "runtimes": tuple(runtime.name for runtime in KINDS),
                }
            ),
        ),
    }
)


def with_devices(machine: str) -> dict[str, object]:
    """Return what the Mac or the GPU machine says of itself."""
    told = WorkerCapabilities.model_validate(some_capabilities(CORES[machine]))
    seen = Observed(source="test", observed_at=NOON)
    common = {"healthy": True, "execution_supported": True, "observed": seen}
    if machine == GPU_BOX:
        devices = tuple(
            AcceleratorDevice.model_validate(
                {
                    "accelerator": DeviceKind.CUDA,
                    "vendor": "NVIDIA",
                    "name": "H100",
                    "uuid": uuid,
                    "memory_mib": 81559,
                    "memory_kind": MemoryKind.DEDICATED,
                    "compute_capability": "9.0",
                    "driver_version": "550.54.15",
                }
                | common
            )
            for uuid in GPUS
        )
        return told.model_copy(update={"accelerators": devices}).model_dump(mode="json")
    host = HostFacts.model_validate(
        told.host.model_dump()
        | {
            "os": Fact(value="darwin"),
            "architecture": Fact(value="arm64"),
            "apple_silicon": Fact(value=True),
        }
    )
    gpu = AcceleratorDevice.model_validate(
        {
            "accelerator": DeviceKind.MPS,
            "vendor": "Apple",
            "memory_kind": MemoryKind.UNIFIED,
        }
        | common
    )
    return told.model_copy(update={"host": host, "accelerators": (gpu,)}).model_dump(
        mode="json"
    )


class DeviceMachine(ControllerMachine):
    """A Mac and a machine with two GPUs; whatever is native holds the Mac's GPU."""

    def __init__(self) -> None:
        """Begin before anything is enrolled."""
        super().__init__()
        self.fleet = Fleet(FallibleStore(), catalog=CATALOG)

    @initialize()
    def enrol(self) -> None:
        """More wait for each kind of device than there are."""
        for name, cores in CORES.items():
            self.fleet.machine(name, cores=cores, capabilities=with_devices(name))
        for server, name in enumerate(("whole",) * 3 + ("metal", "small", "small")):
            self.ask(server + 1, name, is_new=True, attended=True)

    @rule(server=SERVERS)
    def ask_for_metal(self, server: int) -> None:
        """Somebody wants the Mac's GPU."""
        self.ask(server, "metal", is_new=True, attended=True)

    @invariant()
    def no_device_has_two_holders(self) -> None:
        """Among all that really runs, and in the truth; CPU work holds no GPU."""
        for name, agent in self.fleet.agents.items():
            running = [
                agent.launched[allocation].spec for allocation in self.running(agent)
            ]
            held = [
                record.assignment
                for record in self.fleet.core.model.holders(name)
                if record.assignment is not None
            ]
            for holds in (
                [spec.resources for spec in running],
                [assignment.resources for assignment in held],
            ):
                devices = Counter(uuid for item in holds for uuid in item.devices)
                assert set(devices.values()) <= {1}
                assert devices.keys() <= (set(GPUS) if name == GPU_BOX else set())
                assert sum(item.metal for item in holds) <= 1
                assert all(item.metal for item in holds) or name != MAC
            for assignment in held:
                wanted = 1 if assignment.class_name == "whole" else 0
                assert len(assignment.resources.devices) == wanted


pytestmark = pytest.mark.timeout(7200)
STEPS = int(os.environ.get("FLEET_PROPERTY_STEPS", "5000")) // 5


class TestDevices(DeviceMachine.TestCase):  # type: ignore[misc, name-defined]
    """Lives of fifty steps each."""

    settings = settings(
        max_examples=max(1, STEPS // 50), stateful_step_count=50, deadline=None
    )
