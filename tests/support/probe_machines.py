"""Pretend machines for the probes: tools that answer by a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fleet_agent.probes.settings import DetectSettings
from fleet_agent.probes.tools import ToolCall, ToolFault, ToolResult


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

LINUX: dict[str, Any] = {
    "platform": "linux",
    "machine": "x86_64",
    "release": "6.1.0",
    "python": "3.11.7",
    "cores_physical": 8,
    "cores_logical": 16,
    "cores_visible": 16,
    "memory_bytes": 64 << 30,
    "disk": {"total": 1 << 40, "free": 1 << 39},
    "gpu_driver_cards": [],
}
MAC: dict[str, Any] = LINUX | {
    "platform": "darwin",
    "machine": "arm64",
    "mac_version": "15.5",
    "release": "24.5.0",
    "cores_visible": None,
}
FIELDS_ROW = (
    "0, GPU-00000000-0000-0000-0000-000000000001, 00000000:01:00.0, 550.54.15, 81559, "
    "9.0, Disabled, 81000, 559, 97, NVIDIA H100 80GB HBM3\n"
)

Reply = ToolResult | str | Callable[[ToolCall], ToolResult]


@dataclass(slots=True)
class PretendMachine:
    """Answers calls from ``replies``; a tool that is not there is not installed.

    A key is a tool, or a tool with one of its arguments, such as ``nvidia-smi -L``.
    """

    replies: dict[str, Reply] = field(default_factory=dict)
    asked: list[ToolCall] = field(default_factory=list)

    def __call__(self, call: ToolCall) -> ToolResult:
        """Answer *call*."""
        self.asked.append(call)
        keys = [f"{call.tool} {part}" for part in call.argv[1:]]
        reply = next(
            (self.replies[key] for key in [*keys, call.tool] if key in self.replies),
            None,
        )
        if reply is None:
            return ToolResult(
                tool=call.tool, argv=call.argv, exit_code=127, fault=ToolFault.NOT_FOUND
            )
        if callable(reply):
            return reply(call)
        if isinstance(reply, str):
            return ToolResult(tool=call.tool, argv=call.argv, exit_code=0, stdout=reply)
        return reply

    def times(self, tool: str) -> int:
        """Return how often *tool* was asked."""
        return sum(call.tool == tool for call in self.asked)


def a_pretend_machine(
    host: Mapping[str, Any] = LINUX, **replies: Reply
) -> PretendMachine:
    """Return a machine with *host*'s readings; underscores in names are hyphens."""
    named: dict[str, Reply] = {
        "host-readings": json.dumps(dict(host)),
        "usage-readings": json.dumps({"memory_available_bytes": 1 << 30, "load": 0.5}),
        "route-readings": json.dumps({"address": "192.0.2.1"}),
        "landlock-readings": json.dumps({"abi": 7}),
        "bubblewrap": "bubblewrap 0.8.0\n",
        "setpriv": "setpriv from util-linux 2.38.1\n",
    }
    named |= {name.replace("_", "-"): reply for name, reply in replies.items()}
    return PretendMachine(replies=named)


def settings_for(machine: PretendMachine, **facts: Any) -> DetectSettings:
    """Return the settings of a detection on *machine*, at noon."""
    return DetectSettings(
        **{"state_dir": "/state", "ask": machine, "now": lambda: NOON} | facts
    )
