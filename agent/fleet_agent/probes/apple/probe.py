"""Asks a live Mac: a handful of sysctl keys at once, the display's name later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.apple.reading import read_apple_tool
from fleet_agent.probes.tools import Ask, ToolCall, ToolResult


KEYS: Final = (
    "machdep.cpu.brand_string",
    "hw.optional.arm64",
    "kern.hv_vmm_present",
    "hw.physicalcpu",
    "hw.logicalcpu",
    "hw.memsize",
    "iogpu.wired_limit_mb",
)
_SYSCTL: Final = ("/usr/sbin/sysctl",)
_PROFILER: Final = ("/usr/sbin/system_profiler",)


def ask_sysctl(ask: Ask) -> dict[str, ToolResult]:
    """Ask for each key alone: an unknown one must not cost the others."""
    return {
        key: ask(
            ToolCall(
                tool="sysctl", argv=("sysctl", "-n", key), seconds=2.0, places=_SYSCTL
            )
        )
        for key in KEYS
    }


def sysctl_answers(results: dict[str, ToolResult]) -> dict[str, str]:
    """Return the keys that were answered."""
    return {
        key: result.stdout.strip()
        for key, result in results.items()
        if result.exit_code == 0 and result.stdout.strip()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class AppleProbe:
    """Reports the Mac's GPU; *context* holds the host's facts about the Mac."""

    ask: Ask
    context: dict[str, Any]

    def observe(self) -> Answer:
        """Return what system_profiler says now; never raises."""
        call = ToolCall(
            tool="system_profiler",
            argv=("system_profiler", "SPDisplaysDataType", "-json"),
            seconds=15.0,
            places=_PROFILER,
        )
        # The host's facts decide that there is a device; the tool only describes it.
        return read_apple_tool(replace(self.ask(call), context=self.context))
