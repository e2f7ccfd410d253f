"""One allocation as the ledger keeps it: values, and no file.

The environment of a workload holds secrets, so no entry can carry one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fleet_agent.drivers.base import Handle
from fleet_contracts.protocol import AgentEvent, InventoryItem
from fleet_contracts.reasons import Explanation
from fleet_contracts.workloads import WorkloadSpec


OVER = frozenset({AgentEvent.ENDED, AgentEvent.FAILED, AgentEvent.REJECTED})
"""Nothing of the allocation runs, and nothing of it will."""

REMARKS = frozenset({AgentEvent.PROGRESS, AgentEvent.NOTE})
"""Reports that tell something and change no state."""


class Key(NamedTuple):
    """What everything on the agent link is idempotent by."""

    allocation: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopIntent:
    """The decision to end an allocation, durable before anything is done about it."""

    now: bool = False
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How far one allocation is."""

    key: Key
    event: AgentEvent
    """The last event that changed its state."""
    seq: int
    spec: WorkloadSpec | None = field(repr=False)
    """Without its environment and arguments; None when it was refused unseen."""
    handle: Handle | None = field(default=None, repr=False)
    url: str | None = None
    explanation: Explanation | None = None
    stop: StopIntent | None = None
    ends_at: float | None = None
    """Seconds since the epoch at which the time limit ends it; None: no limit."""

    @property
    def holds(self) -> bool:
        """Whether it holds resources of this machine."""
        return self.event not in OVER

    def as_inventory(self) -> InventoryItem:
        """Return the entry as the controller is told of it."""
        return InventoryItem(
            allocation=self.key.allocation,
            epoch=self.key.epoch,
            event=self.event,
            seq=self.seq,
            url=self.url,
            explanation=self.explanation,
        )


def without_secrets(spec: WorkloadSpec) -> WorkloadSpec:
    """Return *spec* without what may hold a secret."""
    return spec.model_copy(update={"environment": {}, "arguments": ()})
