"""What a probe concludes from one tool's output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
