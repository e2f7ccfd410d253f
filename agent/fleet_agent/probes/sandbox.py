"""Whether the tools that shut a workload in really do so here: they are tried."""

from __future__ import annotations

import ctypes
import json
import sys
from dataclasses import dataclass, replace
from typing import Any, Final

from fleet_agent.bubblewrap_program import is_new_enough, packaged_bwrap
from fleet_agent.probes.commands import Trial, judge_trial, version
from fleet_agent.probes.text import positive
from fleet_agent.probes.tools import Ask, ToolCall, ToolResult


LANDLOCK_TOOL: Final = "landlock-readings"
_SECONDS: Final = 5.0
_BUBBLEWRAP: Final = (
    "bwrap",
    "--ro-bind",
    "/",
    "/",
    "--unshare-pid",
    "--unshare-ipc",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "true",
)
_SANDBOX_EXEC: Final = (
    "sandbox-exec",
    "-p",
    "(version 1)(allow default)",
    "/usr/bin/true",
)
_CREATE_RULESET: Final = 444
"""The system call's number, the same on every architecture."""
_ASK_VERSION: Final = 1
SCOPES_SINCE: Final = 6
"""The first Landlock version that closes abstract Unix sockets."""


def read_landlock() -> dict[str, Any]:
    """Return the version of Landlock that the kernel offers; None where it does not."""
    if sys.platform != "linux":
        return {"abi": None}
    libc = ctypes.CDLL(None, use_errno=True)
    abi = libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    return {"abi": abi if abi > 0 else None, "errno": ctypes.get_errno()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxProbe:
    """Reports sandbox tools for *system* (``linux``, ``darwin``)."""

    ask: Ask
    system: str | None

    def observe(self) -> tuple[Trial, ...]:
        """Return each tool of this system, usable or not; never raises."""
        if self.system == "darwin":
            return (self._trial("sandbox-exec", _SANDBOX_EXEC),)
        if self.system != "linux":
            return ()
        return (self._bubblewrap(), self._landlock(), self._setpriv())

    def _trial(self, name: str, argv: tuple[str, ...]) -> Trial:
        return judge_trial(name, self._said(name, argv))

    def _said(self, name: str, argv: tuple[str, ...]) -> ToolResult:
        places = [f"/usr/bin/{argv[0]}"]
        if name == "bubblewrap" and (packaged := packaged_bwrap()) is not None:
            places.append(packaged)
        return self.ask(
            ToolCall(tool=name, argv=argv, seconds=_SECONDS, places=tuple(places))
        )

    def _bubblewrap(self) -> Trial:
        trial = self._trial("bubblewrap", _BUBBLEWRAP)
        if not trial.usable:
            return trial
        found = version(self._said("bubblewrap", ("bwrap", "--version")).text)
        if not is_new_enough(found):
            return replace(trial, usable=False, version=found, reason="too_old")
        return replace(trial, version=found)

    def _setpriv(self) -> Trial:
        return self._trial("setpriv", ("setpriv", "--version"))

    def _landlock(self) -> Trial:
        result = self.ask(ToolCall(tool=LANDLOCK_TOOL, argv=(LANDLOCK_TOOL,)))
        try:
            abi = positive(json.loads(result.stdout).get("abi"))
        except (ValueError, AttributeError, RecursionError):
            return Trial(name="landlock", usable=None, reason="not_readable")
        if abi is None:
            return Trial(name="landlock", usable=False, reason="kernel_lacks_it")
        scoped = abi >= SCOPES_SINCE
        return Trial(
            name="landlock",
            usable=True,
            version=str(abi),
            reason="ok" if scoped else "abstract_sockets_stay_open",
        )
