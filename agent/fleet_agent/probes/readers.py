"""Answers the calls that are no programs: readings of files and system calls.

They are asked like a tool, so that a recording holds them as it holds any other.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from fleet_agent.probes.engine_readings import TOOL as ENGINE, read_engine
from fleet_agent.probes.frameworks import TOOL as PACKAGES, read_packages
from fleet_agent.probes.host.probe import HOST, USAGE
from fleet_agent.probes.host.readings import read_host, read_usage
from fleet_agent.probes.launchers import TOOL as LAUNCHERS, read_launchers
from fleet_agent.probes.network import TOOL as ROUTE, read_route
from fleet_agent.probes.presence import POWER_TOOL, read_power
from fleet_agent.probes.running import run
from fleet_agent.probes.sandbox import LANDLOCK_TOOL, read_landlock
from fleet_agent.probes.tools import ToolCall, ToolResult


_READERS: Final[dict[str, Callable[[tuple[str, ...]], Any]]] = {
    HOST: lambda argv: read_host(argv[1]),
    USAGE: lambda _: read_usage(),
    PACKAGES: lambda argv: read_packages(argv[1]),
    LAUNCHERS: lambda argv: read_launchers(argv[1:]),
    ENGINE: lambda argv: read_engine(argv[1]),
    ROUTE: lambda _: read_route(),
    POWER_TOOL: lambda _: read_power(),
    LANDLOCK_TOOL: lambda _: read_landlock(),
}


def ask_machine(call: ToolCall) -> ToolResult:
    """Answer *call* from this machine; never raises."""
    reader = _READERS.get(call.tool)
    if reader is None:
        return run(call)
    try:
        said = json.dumps(reader(call.argv), indent=1, sort_keys=True)
    except (OSError, ValueError, AttributeError, LookupError, TypeError) as error:
        told = f"{type(error).__name__}: {error}"
        return ToolResult(tool=call.tool, argv=call.argv, exit_code=1, stderr=told)
    return ToolResult(tool=call.tool, argv=call.argv, exit_code=0, stdout=said)
