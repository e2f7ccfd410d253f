"""What placement reads of a machine's picture: amounts, devices and yes-or-no facts.

Everything else in ``WorkerCapabilities`` is for people.  Observations of usage are
not here on purpose: they are never capacity.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import AwareDatetime, Field

from fleet_contracts.base import Contract
from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    MemoryKind,
    OwnerTerm,
    ProbeStatus,
    WorkerCapabilities,
)
from fleet_contracts.devices import MACOS
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName


_MIB = 1024 * 1024
_KINDS = {
    "nvidia": DeviceKind.CUDA,
    "amd": DeviceKind.ROCM,
    "apple": DeviceKind.MPS,
}
"""What each probe of devices is asked about."""


class PlaceableDevice(Contract):
    """One accelerator, as placement judges it."""

    accelerator: DeviceKind
    uuid: str | None = None
    """None: it cannot be held by name, so only the Metal rule can place on it."""
    name: str | None = None
    memory_bytes: int | None = None
    """None is unknown: a class that asks for an amount is not known to fit."""
    memory_kind: MemoryKind = MemoryKind.UNKNOWN
    compute_capability: str | None = None
    driver_version: str | None = None
    healthy: bool | None = None
    usable: bool = False
    """It works, is whole, and can be held alone."""
    counts_to: str | None = None
    """Another machine, which says that it has this very device: the controller's word."""


class PlacementFacts(Contract):
    """The part of a machine's picture that decides.  None is unknown, and fits nothing."""

    known: bool = False
    """The host facts are in: before that nothing native is placed."""
    settled: bool = False
    """Every probe has answered or given up: what is unknown now will stay so."""
    os: str | None = None
    architecture: str | None = None
    apple_silicon: bool | None = None
    metal_fenced: bool = False
    """A CPU notebook here was seen to be kept from the Mac's GPU, and may share it."""
    cores_milli: int | None = None
    """What the machine has and its owner lends of it."""
    memory_bytes: int | None = None
    whole_cores_milli: int | None = None
    """All that it has, where its owner lends less."""
    whole_memory_bytes: int | None = None
    closed: Reason | None = None
    """Why the machine's owner lets it take nothing new now; None: it takes work."""
    opens_at: AwareDatetime | None = None
    """When that ends by itself; None: nobody knows."""
    disk_free_bytes: int | None = None
    devices: tuple[PlaceableDevice, ...] = ()
    unlisted: dict[DeviceKind, str] = Field(default_factory=dict)
    """Kinds of devices of which there may be more than ``devices`` names, with why
    nobody knows: what is not among them is unknown, and not absent."""
    capabilities: dict[str, bool | None] = Field(default_factory=dict)
    """``sandbox.bubblewrap`` and the like; None or absent is unknown."""
    environments: dict[str, dict[str, bool | None]] = Field(default_factory=dict)
    """What each workload environment can do here, by its ref: ``torch.cuda``, …"""
    frameworks: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Installed versions by environment; what is absent is unknown."""
    drivers: dict[DriverName, bool | None] = Field(default_factory=dict)
    driver_faults: dict[DriverName, str] = Field(default_factory=dict)
    """Why a driver cannot be used, or is not known to be, as the agent's word for it:
    ``sandbox_missing``."""
    driver_environments: dict[DriverName, tuple[str, ...]] = Field(default_factory=dict)
    """The refs that a driver can run; one that is absent may run any."""
    labels: dict[str, str] = Field(default_factory=dict)

    def has(self, capability: str, environment: str | None = None) -> bool | None:
        """Say whether the machine has *capability*; None when nobody knows.

        What torch can do is a fact of (machine, environment): one environment does
        not speak for another, and one that is not built yet is unknown.
        """
        if environment is not None and capability in self.environments.get(
            environment, {}
        ):
            return self.environments[environment][capability]
        return self.capabilities.get(capability)


def placement_facts(capabilities: WorkerCapabilities) -> PlacementFacts:
    """Return what placement may rely on in *capabilities*."""
    host = capabilities.host
    closing = next((term for term in capabilities.terms if term.met is not True), None)
    cores = _lent(capabilities, "cpu", host.cores_allowed_milli.value)
    memory = _lent(capabilities, "memory", host.memory_allowed_bytes.value)
    return PlacementFacts(
        known=host.os.value is not None,
        settled=capabilities.settled,
        os=host.os.value,
        architecture=host.architecture.value,
        apple_silicon=host.apple_silicon.value,
        metal_fenced=_fenced(capabilities),
        cores_milli=cores,
        memory_bytes=memory,
        whole_cores_milli=host.cores_allowed_milli.value
        if cores != host.cores_allowed_milli.value
        else None,
        whole_memory_bytes=host.memory_allowed_bytes.value
        if memory != host.memory_allowed_bytes.value
        else None,
        closed=None if closing is None else _reason(closing),
        opens_at=None if closing is None else closing.until,
        disk_free_bytes=host.disk_free_bytes.value,
        devices=_each_once(map(_placeable, capabilities.accelerators)),
        unlisted=_unlisted(capabilities),
        capabilities=_named(capabilities),
        environments=_by_environment(capabilities),
        frameworks=_frameworks(capabilities),
        drivers={driver.name: driver.usable for driver in capabilities.drivers},
        driver_faults={
            driver.name: driver.reason
            for driver in capabilities.drivers
            if driver.usable is not True
        },
        driver_environments={
            driver.name: driver.environments
            for driver in capabilities.drivers
            if driver.environments is not None
        },
        labels={label.name: label.value for label in capabilities.labels},
    )


def _fenced(capabilities: WorkerCapabilities) -> bool:
    """Return whether the fence holds on this very build, with the owner's consent."""
    fence, host = capabilities.metal_fence, capabilities.host
    return (
        fence is not None
        and fence.consent
        and fence.holds is True
        and fence.os_build is not None
        and fence.os_build == host.os_build.value
        and host.os.value == MACOS
        and host.apple_silicon.value is True
    )


def _lent(capabilities: WorkerCapabilities, name: str, has: int | None) -> int | None:
    """Return the smaller of what the machine has and what its owner lends of it."""
    limits = [term.amount for term in capabilities.terms if term.name == name]
    return None if has is None else min([has, *(it for it in limits if it is not None)])


def _reason(term: OwnerTerm) -> Reason:
    """Return the code of an unmet term; an agent may know newer ones than we do."""
    try:
        return Reason(term.reason)
    except ValueError:
        return Reason.OWNER_CLOSED


def _placeable(device: AcceleratorDevice) -> PlaceableDevice:
    memory = device.memory_mib
    return PlaceableDevice(
        accelerator=device.accelerator,
        uuid=device.uuid,
        name=device.name,
        memory_bytes=None if memory is None else memory * _MIB,
        memory_kind=device.memory_kind,
        compute_capability=device.compute_capability,
        driver_version=device.driver_version,
        healthy=device.healthy,
        usable=_usable(device),
    )


def _unlisted(capabilities: WorkerCapabilities) -> dict[DeviceKind, str]:
    """Return the kinds of devices whose own tool is there and did not list them all.

    A tool that is absent says "none": no devices were ever used through it here.
    """
    no_metal = capabilities.host.apple_silicon.value is False
    return {
        _KINDS[
            probe.probe
        ]: f"{probe.observed.source}: {probe.reason.replace('_', ' ')}"
        for probe in capabilities.probes
        if probe.probe in _KINDS
        and probe.devices_complete is False
        and probe.status is not ProbeStatus.TOOL_ABSENT
        and not (no_metal and _KINDS[probe.probe] is DeviceKind.MPS)
    }


def _each_once(devices: Iterable[PlaceableDevice]) -> tuple[PlaceableDevice, ...]:
    """Return *devices* without those that were told before, under the same UUID.

    What is told twice is one device, and works only if both say so.
    """
    told: dict[object, PlaceableDevice] = {}
    for number, device in enumerate(devices):
        key = number if device.uuid is None else device.uuid
        first = told.setdefault(key, device)
        if first.usable and not device.usable:
            told[key] = device
    return tuple(told.values())


def _usable(device: AcceleratorDevice) -> bool:
    if device.execution_supported is not True or device.healthy is False:
        return False
    if device.accelerator is DeviceKind.MPS:
        return True
    # A card cut into MIG slices cannot be handed out whole, and one without a
    # UUID cannot be named in CUDA_VISIBLE_DEVICES.
    return device.uuid is not None and device.mig_enabled is not True


def _named(capabilities: WorkerCapabilities) -> dict[str, bool | None]:
    found: dict[str, bool | None] = {}
    for sandbox in capabilities.sandboxes:
        found[f"sandbox.{sandbox.name}"] = sandbox.usable
    for engine in capabilities.container_engines:
        found[f"container.{engine.name}"] = engine.usable
        found[f"container.{engine.name}.gpu"] = engine.gpu_runtime
    for launcher in capabilities.launchers:
        found[f"launcher.{launcher.name}"] = launcher.usable
    return dict(sorted(found.items()))


def _by_environment(
    capabilities: WorkerCapabilities,
) -> dict[str, dict[str, bool | None]]:
    found: dict[str, dict[str, bool | None]] = {}
    for torch in capabilities.torch:
        if torch.environment is not None:
            facts = found.setdefault(torch.environment, {})
            facts["torch.cuda"], facts["torch.mps"] = torch.cuda, torch.mps
    for backend in capabilities.distributed_backends:
        facts = found.setdefault(backend.environment, {})
        facts[f"distributed.{backend.name}"] = backend.available
    return found


def _frameworks(capabilities: WorkerCapabilities) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for framework in capabilities.frameworks:
        if framework.version is not None:
            versions = found.setdefault(framework.environment, {})
            versions[framework.name] = framework.version
    return found
