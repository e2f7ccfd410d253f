"""Does somebody use this computer, and does it run on its battery?

Asked only where the owner lends it under such a term.  None is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from fleet_agent.probes.tools import Ask, ToolCall, ToolResult


POWER_TOOL: Final = "power-readings"
_SECONDS: Final = 5.0
_IDLE_NANOSECONDS: Final = re.compile(r'"HIDIdleTime" = (\d{1,20})')
_IDLE_SINCE: Final = re.compile(r"^IdleSinceHint=(\d{1,20})$", re.MULTILINE)
_IDLE: Final = re.compile(r"^IdleHint=(yes|no)$", re.MULTILINE)
_SOURCE: Final = re.compile(r"Now drawing from '(AC|Battery|UPS) Power'")
_SUPPLIES: Final = Path("/sys/class/power_supply")


def read_power(folder: Path = _SUPPLIES) -> dict[str, Any]:
    """Return what the kernel says of each supply: its type, and whether it is online."""
    found = []
    for supply in sorted(folder.glob("*")):
        facts = {}
        for name in ("type", "online", "scope"):
            try:
                facts[name] = (supply / name).read_text("ascii").strip()
            except (OSError, ValueError):
                continue
        found.append(facts)
    return {"supplies": found}


@dataclass(frozen=True, slots=True, kw_only=True)
class PresenceProbe:
    """Reports presence and power for *system* (``linux``, ``darwin``)."""

    ask: Ask
    system: str | None
    now: Callable[[], datetime]

    def idle_seconds(self) -> float | None:
        """Return for how long nobody has touched the computer; never raises."""
        if self.system == "darwin":
            argv = ("ioreg", "-c", "IOHIDSystem", "-d", "4")
            told = self._ask("ioreg", argv, "/usr/sbin/ioreg").stdout
            times = [int(text) for text in _IDLE_NANOSECONDS.findall(told)]
            return min(times) / 1e9 if times else None
        if self.system != "linux":
            return None
        # Without a session's name: the whole computer.
        asked = ("loginctl", "show-session", "-p", "IdleHint", "-p", "IdleSinceHint")
        return self._since(self._ask("loginctl", asked, "/usr/bin/loginctl").stdout)

    def on_battery(self) -> bool | None:
        """Return whether no mains power comes in; never raises."""
        if self.system == "darwin":
            told = self._ask("pmset", ("pmset", "-g", "batt"), "/usr/bin/pmset").stdout
            source = _SOURCE.search(told)
            return None if source is None else source[1] != "AC"
        if self.system != "linux":
            return None
        return _on_battery(self.ask(ToolCall(tool=POWER_TOOL, argv=(POWER_TOOL,))))

    def _ask(self, tool: str, argv: tuple[str, ...], place: str) -> ToolResult:
        return self.ask(
            ToolCall(tool=tool, argv=argv, seconds=_SECONDS, places=(place,))
        )

    def _since(self, told: str) -> float | None:
        idle, since = _IDLE.search(told), _IDLE_SINCE.search(told)
        if idle is None:
            return None
        if idle[1] == "no":
            return 0.0
        if since is None:
            return None
        # In microseconds of the clock on the wall; 0 where it was never touched.
        return max(0.0, self.now().timestamp() - int(since[1]) / 1e6)


def _on_battery(result: ToolResult) -> bool | None:
    try:
        supplies = json.loads(result.stdout)["supplies"]
        own = [each for each in supplies if each.get("scope") != "Device"]
        mains = [each["online"] for each in own if each.get("type") != "Battery"]
        batteries = any(each.get("type") == "Battery" for each in own)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not batteries:
        # A computer without a battery runs on the mains, listed or not.
        return False
    return not any(online == "1" for online in mains) if mains else None
