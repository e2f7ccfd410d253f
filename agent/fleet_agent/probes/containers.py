"""Whether Docker or podman can be used: the daemon answers, and may hand out GPUs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fleet_agent.probes.engine_readings import TOOL as ENGINE
from fleet_agent.probes.faults import is_absent, process_fault
from fleet_agent.probes.text import known, lines, shortened
from fleet_agent.probes.tools import Ask, ToolCall, ToolResult


_SECONDS: Final = 15.0
_CALLS: Final = {
    "docker": ("docker", "info", "--format", "{{json .}}"),
    "podman": ("podman", "info", "--format", "json"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One container engine; None is unknown."""

    name: str
    usable: bool | None
    version: str | None = None
    gpu_runtime: bool | None = None
    reason: str = "ok"
    told: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerProbe:
    """Reports container engines: a client alone is none."""

    ask: Ask
    host: str | None = None
    """Where the Docker driver's engine answers: it counts, whatever a client says."""
    can_keep_in: bool | None = None
    """As in the settings of a detection."""

    def observe(self) -> tuple[Engine, ...]:
        """Return each engine whose client is there; never raises."""
        found = []
        for name, argv in _CALLS.items():
            result = self.ask(ToolCall(tool=name, argv=argv, seconds=_SECONDS))
            if not is_absent(result):
                found.append(judge_engine(name, result))
        if self.host is None:
            return tuple(found)
        has_client = any(engine.name == "docker" for engine in found)
        own = self._own(self.host, has_client=has_client)
        others = tuple(engine for engine in found if engine.name != own.name)
        return (own, *others)

    def _own(self, host: str, *, has_client: bool) -> Engine:
        call = ToolCall(tool=ENGINE, argv=(ENGINE, host), seconds=_SECONDS)
        result = self.ask(call)
        if is_absent(result):
            # Without its client either there is none; one that ended may come back.
            usable = None if has_client else False
            return Engine(name="docker", usable=usable, reason="daemon_not_reachable")
        engine = judge_engine("docker", result)
        if engine.usable and self.can_keep_in is not None:
            info = _json(result.stdout)
            if not (self.can_keep_in and _runs_in_this_kernel_as_root(info)):
                return replace(engine, usable=False, reason="not_kept_in")
        return engine


def judge_engine(name: str, result: ToolResult) -> Engine:
    """Judge what ``info`` said; a client prints its own half without a daemon.

    An engine that does not answer, or not to us, is unknown: it may be starting anew.
    """
    fault = process_fault(result)
    if fault is not None and "permission denied" not in result.text.lower():
        return Engine(name=name, usable=None, reason=fault.reason, told=_told(result))
    info = _json(result.stdout)
    version = _version(info)
    if version is None:
        lower = result.text.lower()
        denied = "permission denied" in lower
        emulated = name == "docker" and "podman" in lower
        reason = (
            "permission_denied"
            if denied
            else "emulated_by_podman"
            if emulated
            else "daemon_not_reachable"
        )
        usable = False if emulated and not denied else None
        return Engine(name=name, usable=usable, reason=reason, told=_told(result))
    reason = _unsuitable(info)
    return Engine(
        name=name,
        usable=reason == "ok",
        version=version,
        gpu_runtime=_gpu(info),
        reason=reason,
    )


def _unsuitable(info: Mapping[str, Any]) -> str:
    """Return why an engine that answers is of no use to the Docker driver, or ok."""
    engine = info.get("engine")
    parts = engine.get("Components") if isinstance(engine, Mapping) else None
    if isinstance(parts, list) and "podman" in str(parts).lower():
        return "emulated_by_podman"
    if info.get("OSType") not in {None, "linux"}:
        return "runs_no_linux_containers"
    return "ok"


def _runs_in_this_kernel_as_root(info: Mapping[str, Any]) -> bool:
    """Whether rules of this machine's packet filter hold for the engine's containers."""
    options = info.get("SecurityOptions")
    rootless = "name=rootless" in str(options)
    return not rootless and "Docker Desktop" not in str(info.get("OperatingSystem"))


def _json(text: str) -> Mapping[str, Any]:
    start = text.find("{")
    try:
        value = json.JSONDecoder().raw_decode(text, max(start, 0))[0]
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, Mapping) else {}


def _version(info: Mapping[str, Any]) -> str | None:
    own = known(info.get("ServerVersion"))
    podman = info.get("version")
    if own is None and isinstance(podman, Mapping):
        own = known(podman.get("Version"))
    return own[:40] if own else None


def _gpu(info: Mapping[str, Any]) -> bool | None:
    """Whether a device runtime is set up; False only where Docker lists its own."""
    runtimes = info.get("Runtimes")
    devices = info.get("DiscoveredDevices")
    if isinstance(devices, list) and any(
        "nvidia.com/gpu" in str(item) for item in devices
    ):
        return True
    if isinstance(runtimes, Mapping):
        return "nvidia" in runtimes
    return None


def _told(result: ToolResult) -> str:
    said = lines(result.stderr) or lines(result.stdout)
    return shortened(said[-1]) if said else ""
