"""Makes one picture of what the probes saw; pure, but for the time it is handed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.apple.devices import Mac, metal_device
from fleet_agent.probes.commands import Trial
from fleet_agent.probes.containers import Engine
from fleet_agent.probes.drivers import agent_drivers
from fleet_agent.probes.environments import EnvironmentFacts
from fleet_agent.probes.flights import Landed
from fleet_agent.probes.host.probe import HostSighting
from fleet_agent.probes.nvidia.probe import NvidiaSighting
from fleet_agent.probes.observe import with_devices
from fleet_agent.probes.reports import notes, report, slow_report
from fleet_agent.probes.settings import DetectSettings
from fleet_contracts.capabilities import (
    AcceleratorDevice,
    Backend,
    ContainerEngine,
    Fact,
    Framework,
    HostFacts,
    Label,
    NetworkFacts,
    Observed,
    Origin,
    ProbeReport,
    Tool,
    TorchFacts,
    Usage,
    WorkerCapabilities,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the probes have said so far; None was not asked yet."""

    at: datetime
    host: Landed[HostSighting]
    sandbox: Landed[tuple[Trial, ...]]
    network: Landed[str | None]
    nvidia: Landed[NvidiaSighting] | None = None
    amd: Landed[tuple[str, Answer]] | None = None
    containers: Landed[tuple[Engine, ...]] | None = None
    launchers: Landed[tuple[Trial, ...]] | None = None
    apple: Landed[Answer] | None = None
    environments: tuple[EnvironmentFacts, ...] = ()

    def with_hardware(
        self,
        *,
        at: datetime,
        nvidia: Landed[NvidiaSighting],
        amd: Landed[tuple[str, Answer]],
        containers: Landed[tuple[Engine, ...]],
        launchers: Landed[tuple[Trial, ...]],
        apple: Landed[Any],
    ) -> Seen:
        """Return this with what the slower probes said."""
        return replace(
            self,
            at=at,
            nvidia=nvidia,
            amd=amd,
            containers=containers,
            launchers=launchers,
            apple=apple,
        )

    def with_environments(self, facts: tuple[EnvironmentFacts, ...]) -> Seen:
        """Return this with what the environments said."""
        return replace(self, environments=facts)

    def facts(self) -> HostFacts:
        """Return the host's facts; all unknown when it did not answer."""
        return self.host.value.facts if self.host.value else HostFacts()

    def context(self) -> dict[str, Any]:
        """Return what an output alone does not decide."""
        host = self.facts()
        known = {
            "os": host.os.value,
            "os_version": host.os_version.value,
            "apple_silicon": host.apple_silicon.value,
            "virtual_machine": host.virtual_machine.value,
            "cpu_brand": host.cpu_name.value,
            "container": host.container.value,
        }
        return {name: value for name, value in known.items() if value is not None}

    def pci_ids(self) -> tuple[str, ...]:
        """Return the cards that the kernel's driver lists."""
        return self.host.value.pci_ids if self.host.value else ()

    def gpu_files(self, beginning: str) -> tuple[str, ...]:
        """Return the files of the kernel's GPUs whose names begin so."""
        found = self.host.value.gpu_files if self.host.value else ()
        return tuple(name for name in found if name.startswith(beginning))

    def driver_versions(self) -> tuple[str, ...]:
        """Return the GPU drivers' versions, on which torch's answer depends."""
        return tuple(sorted({item.driver_version or "" for item in _devices(self)}))


def assemble(
    settings: DetectSettings, seen: Seen, *, settled: bool
) -> WorkerCapabilities:
    """Return the picture of what was *seen*."""
    sandboxes = tuple(_tool(trial, seen.at) for trial in seen.sandbox.value or ())
    engines = _engines(seen)
    reports = tuple(_reports(seen))
    return WorkerCapabilities(
        schema=WorkerCapabilities().schema_,
        detected_at=seen.at,
        settled=settled,
        host=seen.facts(),
        accelerators=_devices(seen),
        frameworks=tuple(_frameworks(seen)),
        torch=tuple(_torch(seen)),
        distributed_backends=tuple(_backends(seen)),
        launchers=_launchers(seen),
        container_engines=engines,
        sandboxes=sandboxes,
        drivers=agent_drivers(settings, seen.facts(), sandboxes, engines, seen.at),
        network=_network(settings, seen),
        labels=tuple(_labels(settings, seen.at)),
        usage=_usage(seen),
        probes=reports,
        notes=notes(reports),
    )


def _observed(source: str, at: datetime, origin: Origin = Origin.DETECTED) -> Observed:
    return Observed(origin=origin, source=source, observed_at=at)


def _devices(seen: Seen) -> tuple[AcceleratorDevice, ...]:
    found: list[AcceleratorDevice] = []
    if seen.nvidia and seen.nvidia.value:
        found += _from("nvidia-smi", seen.nvidia.value.answer, seen.at)
    if seen.amd and seen.amd.value:
        found += _from(*seen.amd.value, seen.at)
    found += _mac_devices(seen)
    return tuple(found)


def _from(tool: str, answer: Answer, at: datetime) -> list[AcceleratorDevice]:
    observed = _observed(tool, at)
    return [item.model_copy(update={"observed": observed}) for item in answer.devices]


def _mac_devices(seen: Seen) -> list[AcceleratorDevice]:
    if seen.apple and seen.apple.value:
        found = list(seen.apple.value.devices)
    else:
        mac = Mac.from_context(seen.context())
        found = [metal_device(mac)] if mac.apple_silicon else []
    limit = (
        seen.host.value.sysctl.get("iogpu.wired_limit_mb") if seen.host.value else None
    )
    observed = _observed("system_profiler" if seen.apple else "sysctl", seen.at)
    return [
        item.model_copy(update={"observed": observed} | _limit(limit, seen.at))
        for item in found
    ]


def _limit(limit: str | None, at: datetime) -> dict[str, Any]:
    """A limit of 0 means the system's default, which it does not tell."""
    if limit is None or not limit.isdecimal() or int(limit) == 0:
        return {}
    return {
        "memory_mib": int(limit),
        "sources": {"memory_mib": _observed("sysctl", at)},
    }


def _frameworks(seen: Seen) -> Iterable[Framework]:
    for item in seen.environments:
        for package in item.packages or ():
            yield Framework(
                name=package.name,
                version=package.version,
                build=package.build,
                environment=item.environment.ref,
                observed=_observed("package metadata", seen.at),
            )


def _torch(seen: Seen) -> Iterable[TorchFacts]:
    for item in seen.environments:
        if item.torch is None:
            continue
        facts = item.torch.torch or TorchFacts(
            status=item.torch.status, reason=item.torch.reason
        )
        yield facts.model_copy(
            update={
                "environment": item.environment.ref,
                "interpreter": item.environment.interpreter,
                "observed": _observed("torch probe", seen.at),
            }
        )


def _backends(seen: Seen) -> Iterable[Backend]:
    for facts in _torch(seen):
        if facts.distributed_backends is None or facts.environment is None:
            continue
        for name in ("gloo", "nccl"):
            yield Backend(
                name=name,
                available=name in facts.distributed_backends,
                environment=facts.environment,
                observed=_observed("torch probe", seen.at),
            )


def _tool(trial: Trial, at: datetime) -> Tool:
    return Tool(
        name=trial.name,
        usable=trial.usable,
        version=trial.version,
        reason=trial.reason,
        observed=_observed(trial.name, at),
    )


def _launchers(seen: Seen) -> tuple[Tool, ...]:
    trials = (seen.launchers.value if seen.launchers else None) or ()
    return tuple(_tool(trial, seen.at) for trial in trials)


def _engines(seen: Seen) -> tuple[ContainerEngine, ...]:
    return tuple(
        ContainerEngine(
            name=engine.name,
            usable=engine.usable,
            version=engine.version,
            reason=engine.reason,
            gpu_runtime=engine.gpu_runtime,
            observed=_observed(f"{engine.name} info", seen.at),
        )
        for engine in (seen.containers.value if seen.containers else None) or ()
    )


def _network(settings: DetectSettings, seen: Seen) -> NetworkFacts:
    if settings.advertise_address:
        observed = _observed("configuration", seen.at, Origin.LABEL)
        return NetworkFacts(
            advertise_address=Fact(value=settings.advertise_address, observed=observed)
        )
    observed = _observed("default route", seen.at)
    return NetworkFacts(
        advertise_address=Fact(value=seen.network.value, observed=observed)
    )


def _labels(settings: DetectSettings, at: datetime) -> Iterable[Label]:
    observed = _observed("configuration", at, Origin.LABEL)
    for name, value in sorted(settings.labels.items()):
        yield Label(name=name, value=value, observed=observed)


def _usage(seen: Seen) -> Usage | None:
    if seen.host.value is None:
        return None
    busy = seen.nvidia.value.usage if seen.nvidia and seen.nvidia.value else ()
    return with_devices(seen.host.value.usage, busy)


def _reports(seen: Seen) -> Iterable[ProbeReport]:
    """Return how each probe that judges devices or an environment ended."""
    answers: list[tuple[str, str, Landed[Any] | None, Answer | None]] = [
        (
            "nvidia",
            "nvidia-smi",
            seen.nvidia,
            seen.nvidia.value.answer if seen.nvidia and seen.nvidia.value else None,
        ),
        (
            "amd",
            seen.amd.value[0] if seen.amd and seen.amd.value else "amd-smi",
            seen.amd,
            seen.amd.value[1] if seen.amd and seen.amd.value else None,
        ),
    ]
    if seen.facts().os.value == "darwin":
        apple = seen.apple.value if seen.apple else None
        answers.append(("apple", "system_profiler", seen.apple, apple))
    for name, source, landed, answer in answers:
        if landed is not None:
            yield report(name, landed, answer, _observed(source, seen.at))
    for item in seen.environments:
        if item.torch is not None:
            yield report(
                f"torch {item.environment.ref}",
                Landed(value=item.torch),
                item.torch,
                _observed("torch probe", seen.at),
            )
    for name, plain in (
        ("host", seen.host),
        ("sandbox", seen.sandbox),
        ("network", seen.network),
        ("containers", seen.containers),
        ("launchers", seen.launchers),
    ):
        if plain is not None and (plain.late or plain.error):
            yield slow_report(name, plain, _observed(name, seen.at))
