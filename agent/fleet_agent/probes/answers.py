"""What a probe concludes from one tool's output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fleet_contracts.capabilities import AcceleratorDevice, ProbeStatus, TorchFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A conclusion.  No devices and ``devices_complete`` False means: unknown.

    Only ``no_devices`` means zero, and only for the GPU driver that was asked.
    """

    status: ProbeStatus
    reason: str = "ok"
    devices: tuple[AcceleratorDevice, ...] = ()
    devices_complete: bool = False
    torch: TorchFacts | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    retry_without: tuple[str, ...] = ()


def failed(status: ProbeStatus, reason: str, *warnings: str) -> Answer:
    """Return that the tool did not answer: its devices are unknown, never zero."""
    return Answer(status=status, reason=reason, warnings=warnings)


_OVERRULED: Final = {
    ProbeStatus.TOOL_ABSENT: "tool_missing",
    ProbeStatus.NO_DEVICES: "cards_not_found",
}


def with_witness(answer: Answer, cards: Sequence[str]) -> Answer:
    """Return *answer*, where the kernel's own driver lists *cards*.

    They are no devices by themselves, and not nothing either: a tool that is not there
    or finds none, as it does of a card that cannot be initialised, says no "none" then.
    """
    if answer.devices or not cards:
        return answer
    reason = _OVERRULED.get(answer.status)
    told = f"the kernel's driver lists {len(cards)} card(s), and the tool names none"
    answer = replace(answer, warnings=(*answer.warnings, told))
    if reason is None:
        return answer
    return replace(
        answer, status=ProbeStatus.TOOL_ERROR, reason=reason, devices_complete=False
    )
