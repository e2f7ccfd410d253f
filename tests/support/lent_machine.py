"""A real agent on a machine whose owner lends it on terms, and whose day a test decides.

``python lent_machine.py DAY run …``: the command line is the agent's own.  DAY is a file
with what the agent finds when it looks: the time, how long keyboard and mouse have
rested, and whether it is plugged in.  Nothing else is other than in any agent.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from fleet_agent import cli, daemon, picture
from fleet_agent.probes.presence import POWER_TOOL
from fleet_agent.probes.readers import ask_machine
from fleet_agent.probes.settings import DetectSettings
from fleet_agent.probes.tools import ToolCall, ToolResult


def write_day(path: Path, **found: Any) -> None:
    """Let the agent find this from now on; by default nothing keeps it from work."""
    day = {"now": "2026-11-25T21:00:00", "idle_minutes": 60, "plugged_in": True} | found
    part = path.with_suffix(".part")
    part.write_text(json.dumps(day))
    part.replace(path)


def main(argv: Sequence[str]) -> int:
    """Run the agent with *argv* behind the file's path; return its exit status."""
    file, *words = argv
    path = Path(file)

    def day() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def now() -> datetime:
        return datetime.fromisoformat(day()["now"]).astimezone()

    def ask(call: ToolCall) -> ToolResult:
        if call.tool == POWER_TOOL:
            online = "1" if day()["plugged_in"] else "0"
            supplies = [{"type": "Mains", "online": online}, {"type": "Battery"}]
            told = json.dumps({"supplies": supplies})
        elif call.tool == "loginctl":
            idle = day()["idle_minutes"]
            told = ""
            if idle is not None:
                since = int((now().timestamp() - idle * 60) * 1e6)
                told = f"IdleHint=yes\nIdleSinceHint={since}\n"
        else:
            return ask_machine(call)
        return ToolResult(tool=call.tool, argv=call.argv, exit_code=0, stdout=told)

    daemon.ask_for = lambda shape, drivers, name: ask
    daemon.DetectSettings = functools.partial(  # type: ignore[assignment,misc]
        DetectSettings, now=now
    )
    # The owner's day goes by faster here.
    picture._TERMS_SECONDS = 0.2
    return cli.main(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
