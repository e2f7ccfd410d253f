"""How each probe ended, and what of that a person should read."""

from __future__ import annotations

from typing import Any, Final

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.flights import Landed
from fleet_contracts.capabilities import Note, Observed, ProbeReport, ProbeStatus


_EXCERPT_BYTES: Final = 4096
_QUIET: Final = frozenset({ProbeStatus.OK, ProbeStatus.NO_DEVICES})
_ABOUT_DEVICES: Final = frozenset({"nvidia", "amd", "apple"})
_TEXTS: Final = {
    ProbeStatus.TOOL_ABSENT: "its tool is not installed, so its devices are unknown",
    ProbeStatus.TOOL_ERROR: "its tool failed, so its devices are unknown",
    ProbeStatus.TIMEOUT: "it did not answer in time, so its facts are unknown",
    ProbeStatus.CRASH: "it crashed, so its facts are unknown",
    ProbeStatus.UNPARSEABLE: "its output could not be understood",
    ProbeStatus.UNSUPPORTED_QUERY: "its tool does not know what was asked",
    ProbeStatus.PARTIAL: "its answer is not whole",
    ProbeStatus.OK_WITH_WARNINGS: "it answered, with warnings",
}


def report(
    name: str, landed: Landed[Any], answer: Answer | None, observed: Observed
) -> ProbeReport:
    """Return how the probe *name* ended."""
    if answer is None:
        return slow_report(name, landed, observed)
    said = "\n".join(answer.warnings)
    return ProbeReport(
        probe=name,
        status=answer.status,
        reason=answer.reason,
        devices_complete=answer.devices_complete if name in _ABOUT_DEVICES else None,
        warnings=answer.warnings[:20],
        excerpt="" if answer.status in _QUIET else said[:_EXCERPT_BYTES],
        observed=observed,
    )


def slow_report(name: str, landed: Landed[Any], observed: Observed) -> ProbeReport:
    """Return that the probe *name* said nothing, and why."""
    late = landed.error is None
    return ProbeReport(
        probe=name,
        status=ProbeStatus.TIMEOUT if late else ProbeStatus.CRASH,
        reason="tool_timeout" if late else "probe_failed",
        devices_complete=False if name in _ABOUT_DEVICES else None,
        excerpt=(landed.error or "")[:_EXCERPT_BYTES],
        observed=observed,
    )


def notes(reports: tuple[ProbeReport, ...]) -> tuple[Note, ...]:
    """Return one sentence for each probe whose end is worth reading."""
    return tuple(
        Note(probe=item.probe, reason=item.reason, text=_sentence(item))
        for item in reports
        if item.status not in _QUIET
    )


def _sentence(item: ProbeReport) -> str:
    told = f": {item.warnings[0]}" if item.warnings else ""
    return f"{item.probe}: {_TEXTS[item.status]} ({item.reason}){told}"
