"""The JSON that ``fleet-agent probe`` prints, live and from recordings alike."""

from __future__ import annotations

from typing import Any, Final

from fleet_agent.probes.answers import Answer
from fleet_contracts.capabilities import ProbeReport, ProbeStatus, WorkerCapabilities


# From the best to the worst news about devices.
_ORDER: Final = (
    ProbeStatus.OK,
    ProbeStatus.OK_WITH_WARNINGS,
    ProbeStatus.PARTIAL,
    ProbeStatus.NO_DEVICES,
    ProbeStatus.UNSUPPORTED_QUERY,
    ProbeStatus.UNPARSEABLE,
    ProbeStatus.TOOL_ERROR,
    ProbeStatus.TIMEOUT,
    ProbeStatus.CRASH,
    ProbeStatus.TOOL_ABSENT,
)
_SAW: Final = frozenset(_ORDER[:3])


def answer_document(answer: Answer) -> dict[str, Any]:
    """Return the conclusion from one case."""
    document: dict[str, Any] = {
        "status": answer.status.value,
        "reason": answer.reason,
        "devices": [device.model_dump(mode="json") for device in answer.devices],
        "devices_complete": answer.devices_complete,
        "facts": dict(answer.facts),
        "warnings": list(answer.warnings),
    }
    if answer.torch is not None:
        document["torch"] = answer.torch.model_dump(mode="json")
    if answer.retry_without:
        document["retry_without"] = list(answer.retry_without)
    return document


def picture_document(picture: WorkerCapabilities) -> dict[str, Any]:
    """Return the conclusion from a whole machine, and its picture.

    ``devices_complete`` speaks of the GPU drivers whose tool is installed: a missing
    tool leaves its driver's devices unknown, and a note says so.
    """
    reports = [item for item in picture.probes if item.devices_complete is not None]
    decisive = _decisive(reports)
    document: dict[str, Any] = {
        "status": decisive.status.value if decisive else ProbeStatus.TOOL_ABSENT.value,
        "reason": decisive.reason if decisive else "tool_not_found",
        "devices": [item.model_dump(mode="json") for item in picture.accelerators],
        "devices_complete": _complete(reports),
        "facts": {},
        "warnings": [note.text for note in picture.notes],
    }
    if picture.torch:
        document["torch"] = picture.torch[0].model_dump(mode="json")
    document["capabilities"] = picture.model_dump(mode="json", by_alias=True)
    return document


def _decisive(reports: list[ProbeReport]) -> ProbeReport | None:
    """Return the report that a person should look at: the worst of those that saw."""
    saw = [item for item in reports if item.status in _SAW]
    if saw:
        return max(saw, key=lambda item: _ORDER.index(item.status))
    return min(reports, key=lambda item: _ORDER.index(item.status), default=None)


def _complete(reports: list[ProbeReport]) -> bool:
    asked = [item for item in reports if item.status is not ProbeStatus.TOOL_ABSENT]
    return bool(asked) and all(item.devices_complete for item in asked)
