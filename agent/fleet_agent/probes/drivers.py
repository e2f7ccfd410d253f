"""Which of the agent's drivers can be used here, from what the probes saw."""

from __future__ import annotations

from datetime import datetime

from fleet_agent.probes.settings import DetectSettings
from fleet_contracts.capabilities import (
    AgentDriver,
    ContainerEngine,
    HostFacts,
    Observed,
    Tool,
)
from fleet_contracts.workloads import DriverName


_SANDBOXES = {"linux": "bubblewrap", "darwin": "sandbox-exec"}

Usable = tuple[bool | None, str]


def agent_drivers(
    settings: DetectSettings,
    host: HostFacts,
    sandboxes: tuple[Tool, ...],
    engines: tuple[ContainerEngine, ...],
    at: datetime,
) -> tuple[AgentDriver, ...]:
    """Return each driver that the agent offers, usable or not."""
    found = []
    for name in settings.drivers:
        if name is DriverName.NATIVE:
            usable, reason = _native(settings, host, sandboxes)
        elif name is DriverName.DOCKER:
            usable, reason = _docker(engines)
        else:
            usable, reason = True, "ok"
        observed = Observed(source="agent", observed_at=at)
        found.append(
            AgentDriver(
                name=name,
                usable=usable,
                reason=reason,
                limits=settings.limits.get(name),
                environments=settings.environments_of.get(name, _any)(),
                observed=observed,
            )
        )
    return tuple(found)


def _any() -> None:
    return None


def _native(
    settings: DetectSettings, host: HostFacts, sandboxes: tuple[Tool, ...]
) -> Usable:
    wanted = _SANDBOXES.get(host.os.value or "")
    if host.os.value is None:
        return None, "host_unknown"
    if wanted is None:
        return False, "os_not_supported"
    tool = next((tool for tool in sandboxes if tool.name == wanted), None)
    if tool is not None and tool.usable:
        return True, "ok"
    if settings.unsandboxed:
        return True, "unsandboxed_allowed"
    if tool is None or tool.usable is None:
        return None, "sandbox_unknown"
    return False, "sandbox_missing"


def _docker(engines: tuple[ContainerEngine, ...]) -> Usable:
    docker = next((engine for engine in engines if engine.name == "docker"), None)
    if docker is None:
        return None, "engine_unknown"
    return docker.usable, docker.reason
