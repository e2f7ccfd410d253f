"""Asks this computer about itself: files and system calls, and sysctl on a Mac."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from fleet_agent.probes.host.facts import judge_host
from fleet_agent.probes.tools import Ask, ToolCall
from fleet_contracts.capabilities import HostFacts, Observed, Usage


HOST: Final = "host-readings"
USAGE: Final = "usage-readings"
SYSCTL_KEYS: Final = (
    "machdep.cpu.brand_string",
    "hw.optional.arm64",
    "kern.hv_vmm_present",
    "iogpu.wired_limit_mb",
    "kern.osversion",
)
_SYSCTL_PLACES: Final = ("/usr/sbin/sysctl",)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSighting:
    """The host's facts, how busy it is, and what other probes may build on."""

    facts: HostFacts
    usage: Usage
    pci_ids: tuple[str, ...] = ()
    """Cards that the kernel's NVIDIA driver lists."""
    gpu_files: tuple[str, ...] = ()
    """Files in ``/dev`` by which the kernel offers GPUs: ``nvidia0``, ``kfd``."""
    sysctl: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProbe:
    """Reports the computer; *state_dir* says which disk."""

    ask: Ask
    state_dir: str
    now: Callable[[], datetime]

    def observe(self) -> HostSighting:
        """Return what the computer is now; never raises for a part it cannot read."""
        readings = self._json(HOST, self.state_dir)
        on_mac = readings.get("platform") == "darwin"
        sysctl = self._sysctl() if on_mac else {}
        observed = Observed(source="psutil", observed_at=self.now())
        return HostSighting(
            facts=judge_host(readings, observed, sysctl),
            usage=self.usage(),
            pci_ids=_names(readings.get("gpu_driver_cards")),
            gpu_files=_names(readings.get("gpu_device_files")),
            sysctl=sysctl,
        )

    def _json(self, tool: str, *arguments: str) -> dict[str, Any]:
        result = self.ask(ToolCall(tool=tool, argv=(tool, *arguments)))
        try:
            value = json.loads(result.stdout)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def _sysctl(self) -> dict[str, str]:
        """Ask for each key alone: an unknown one must not cost the others."""
        found = {}
        for key in SYSCTL_KEYS:
            call = ToolCall(
                tool="sysctl",
                argv=("sysctl", "-n", key),
                seconds=2.0,
                places=_SYSCTL_PLACES,
            )
            result = self.ask(call)
            if result.exit_code == 0 and result.stdout.strip():
                found[key] = result.stdout.strip()
        return found

    def usage(self) -> Usage:
        """Return how busy the computer is now; a moment's work."""
        said = self._json(USAGE)
        available, load = said.get("memory_available_bytes"), said.get("load")
        return Usage(
            observed=Observed(source="psutil", observed_at=self.now()),
            memory_available_bytes=_amount(available),
            load_milli=_amount(load * 1000) if isinstance(load, float) else None,
        )


def _names(value: object) -> tuple[str, ...]:
    return tuple(str(name) for name in value) if isinstance(value, list) else ()


def _amount(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < 1 << 62 else None
