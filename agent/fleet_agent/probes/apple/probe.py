"""Asks a live Mac for the name of its GPU; that there is one, the host knows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.apple.reading import read_apple_tool
from fleet_agent.probes.tools import Ask, ToolCall


_PROFILER: Final = ("/usr/sbin/system_profiler",)


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
