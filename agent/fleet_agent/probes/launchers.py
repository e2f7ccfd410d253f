"""Programs that start a job on several processes or machines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fleet_agent.probes.commands import Trial, judge_trial
from fleet_agent.probes.faults import is_absent
from fleet_agent.probes.tools import Ask, ToolCall


TOOL: Final = "launcher-readings"
_SYSTEM: Final = ("mpirun", "srun")
_OF_ENVIRONMENTS: Final = ("torchrun", "deepspeed")


def read_launchers(interpreters: tuple[str, ...]) -> dict[str, Any]:
    """Return the launchers that lie beside *interpreters*."""
    found = {
        name
        for interpreter in interpreters
        for name in _OF_ENVIRONMENTS
        if Path(interpreter).with_name(name).is_file()
    }
    return {"found": sorted(found)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherProbe:
    """Reports launchers: the system's own, and those of the environments."""

    ask: Ask
    interpreters: tuple[str, ...] = ()

    def observe(self) -> tuple[Trial, ...]:
        """Return each launcher that is there; never raises."""
        found = []
        for name in _SYSTEM:
            call = ToolCall(tool=name, argv=(name, "--version"), seconds=5.0)
            result = self.ask(call)
            if not is_absent(result):
                found.append(judge_trial(name, result))
        # To try these means to import torch: what that can do is its own answer.
        found += [
            Trial(name=name, usable=None, reason="not_tried") for name in self._listed()
        ]
        return tuple(found)

    def _listed(self) -> tuple[str, ...]:
        if not self.interpreters:
            return ()
        result = self.ask(ToolCall(tool=TOOL, argv=(TOOL, *self.interpreters)))
        try:
            listed = json.loads(result.stdout)["found"]
        except (ValueError, LookupError, TypeError, RecursionError):
            return ()
        names = listed if isinstance(listed, list) else []
        return tuple(name for name in _OF_ENVIRONMENTS if name in names)
