"""Under which address this machine would be reached: a claim, tried by others."""

from __future__ import annotations

import ipaddress
import json
import socket
from dataclasses import dataclass
from typing import Any, Final

from fleet_agent.probes.tools import Ask, ToolCall


TOOL: Final = "route-readings"
# Addresses for documentation: nothing is sent, the kernel only chooses a route.
_FAR: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


def read_route() -> dict[str, Any]:
    """Return the address from which this machine would speak to a far one."""
    for family, far in _FAR:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((far, 9))
                return {"address": probe.getsockname()[0]}
        except OSError:
            continue
    return {"address": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkProbe:
    """Reports the address of the default route; None without one."""

    ask: Ask

    def observe(self) -> str | None:
        """Return a routable address; never raises."""
        result = self.ask(ToolCall(tool=TOOL, argv=(TOOL,)))
        try:
            address = ipaddress.ip_address(json.loads(result.stdout)["address"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if address.is_loopback or address.is_link_local or address.is_unspecified:
            return None
        return str(address)
