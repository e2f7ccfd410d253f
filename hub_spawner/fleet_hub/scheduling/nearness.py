"""Of many machines' answers, which one came closest to yes?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fleet_contracts.reasons import FACTS, Explanation, Reason, ReasonKind


HOPELESS: Final = frozenset({ReasonKind.NEVER, ReasonKind.NOT_ALLOWED})
"""Kinds of "no" that waiting cannot clear."""

ORDER: Final = (
    Reason.DATA_NOT_LOCAL,
    Reason.ACCELERATOR_MISMATCH,
    Reason.OS_MISMATCH,
    Reason.RUNTIME_NONE_MATCHES,
    Reason.RUNTIME_MISSING,
    Reason.MODEL_INVALID,
    Reason.DRIVER_UNAVAILABLE,
    Reason.SANDBOX_MISSING,
    Reason.SUPPORT_MISSING,
    Reason.CAPABILITY_MISSING,
    Reason.GPU_COUNT_TOO_SMALL,
    Reason.DEVICE_MODEL_MISMATCH,
    Reason.COMPUTE_CAPABILITY_TOO_LOW,
    Reason.VRAM_TOO_SMALL,
    Reason.DRIVER_TOO_OLD,
    Reason.CPU_TOO_SMALL,
    Reason.MEMORY_TOO_SMALL,
    Reason.LABEL_MISMATCH,
    # What could run it and may not comes closer than what could not.
    Reason.NOT_IN_AUDIENCE,
    Reason.OWNER_FORBIDS,
    Reason.ISOLATION_TOO_WEAK,
    Reason.DISK_TOO_SMALL,
    Reason.CAPABILITIES_UNKNOWN,
    Reason.KEEPS_NO_FILES,
    Reason.AGENT_REJECTED,
    Reason.OFFLINE,
    Reason.AGENT_TOO_OLD,
    Reason.CONTROLLER_RECOVERING,
    Reason.DRAINING,
    Reason.OWNER_CLOSED,
    Reason.PRESENCE_UNKNOWN,
    Reason.OUTSIDE_HOURS,
    Reason.OWNER_AT_WORK,
    Reason.ON_BATTERY,
    Reason.QUARANTINED,
    Reason.SAME_DEVICE,
    Reason.UNHEALTHY,
    Reason.DEVICE_LOST,
    Reason.FOREIGN_PROCESS,
    Reason.GPU_BUSY,
    Reason.METAL_BUSY,
    Reason.CPU_BUSY,
    Reason.MEMORY_BUSY,
    Reason.DISK_BUSY,
    Reason.BEHIND,
)
"""How far a machine came before it said no: later is nearer."""

TAKES_NO_COPY: Final = frozenset({Reason.AGENT_TOO_OLD, Reason.KEEPS_NO_FILES})
"""Why a machine is passed over by whoever is to begin with a copy of files."""

TOLD_AS_REJECTED: Final = TAKES_NO_COPY | {Reason.FOREIGN_PROCESS, Reason.DEVICE_LOST}
"""Why an agent, or the controller in its place, said no, where that is said itself."""

_DISTANCE: Final = {reason: distance for distance, reason in enumerate(ORDER)}


def is_hopeless(explanation: Explanation) -> bool:
    """Return whether waiting cannot clear *explanation*."""
    return FACTS[explanation.reason].kind in HOPELESS


def nearness(reason: Reason) -> tuple[bool, int]:
    """Return how near a miss is: the greatest is the headline among machines."""
    return FACTS[reason].kind not in HOPELESS, _DISTANCE.get(reason, -1)


def nearest(explanations: Iterable[Explanation]) -> Explanation | None:
    """Return the nearest miss; of equal ones the first."""
    return max(
        explanations, key=lambda explanation: nearness(explanation.reason), default=None
    )
