"""Asks a program whether it works, by the cheapest thing that it must be able to do."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fleet_agent.probes.faults import process_fault
from fleet_agent.probes.text import lines, shortened
from fleet_agent.probes.tools import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Whether a program works; None is unknown."""

    name: str
    usable: bool | None
    version: str | None = None
    reason: str = "ok"
    told: str = ""


def judge_trial(name: str, result: ToolResult) -> Trial:
    """Judge a run that has to succeed: absent, broken and hung are different facts."""
    fault = process_fault(result)
    if fault is not None:
        # Only a hang leaves the question open.
        usable = None if result.timed_out else False
        return Trial(name=name, usable=usable, reason=fault.reason, told=_told(result))
    if result.exit_code != 0:
        return Trial(name=name, usable=False, reason="trial_failed", told=_told(result))
    return Trial(name=name, usable=True, version=version(result.text))


def version(text: str) -> str | None:
    """Return the first version number in *text*."""
    match = re.search(r"\b\d{1,6}\.\d{1,6}(?:\.\d{1,6})?(?:[-+.]\w{1,20})?", text)
    return match[0] if match else None


def _told(result: ToolResult) -> str:
    said = lines(result.stderr) or lines(result.stdout)
    return shortened(said[-1]) if said else ""
