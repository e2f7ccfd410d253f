"""Programs that start a job on several processes or machines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleet_agent.probes.commands import Trial, judge_trial
from fleet_agent.probes.tools import Ask, ToolCall, ToolFault


_SYSTEM: Final = ("mpirun", "srun")
_TORCHRUN: Final = "torchrun"


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
            if result.fault is not ToolFault.NOT_FOUND:
                found.append(judge_trial(name, result))
        if any(self._has_torchrun(path) for path in self.interpreters):
            # To try it means to import torch: what torch can do is torch's own answer.
            found.append(Trial(name=_TORCHRUN, usable=None, reason="not_tried"))
        return tuple(found)

    def _has_torchrun(self, interpreter: str) -> bool:
        try:
            return Path(interpreter).with_name(_TORCHRUN).is_file()
        except OSError:
            return False
