"""The durable records: what the controller must still know after a kill.

They are values.  A change makes a new record with ``dataclasses.replace``, and only
``model.Transaction`` puts it in place of the old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fleet_contracts.allocations import HOLDING, State
from fleet_contracts.catalog import Relation
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import (
    Choice,
    DriverName,
    Principal,
    Resources,
    RuntimeSpec,
    ServerKey,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Where a workload was put: what it holds, and how far its agent got."""

    machine: str
    allocation: str
    epoch: int
    runtime: RuntimeSpec = field(repr=False)
    class_name: str
    resources: Resources
    limit_seconds: float | None = None
    since: datetime
    launched: bool = False
    """The agent was told, or may have been: only its word ends the allocation."""
    heard: bool = False
    """The agent has reported on it: the launch need not be sent again."""
    report_seq: int = 0
    """The last report that was taken in."""
    claim_by: datetime | None = None
    """Until when the Hub's start must come; None: no such limit runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopIntent:
    """Somebody wants the end: kept until the machine has confirmed it."""

    actor: str
    now: bool = False
    explanation: Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a workload's files are."""

    machine: str
    driver: DriverName
    class_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One server of one user; each launch of it is a generation."""

    id: str
    key: ServerKey
    generation: int
    principal: Principal
    server_name: str
    notebook: str
    """The name of its folder on a machine."""
    choice: Choice
    state: State
    line: int
    """Its place in the order of asking; lower came first."""
    asked_at: datetime
    attempt: str
    parked: bool = False
    explanation: Explanation | None = None
    promise: float | None = None
    rejected_by: Mapping[str, Reason] = field(default_factory=dict)
    rejections: int = 0
    assignment: Assignment | None = None
    stop: StopIntent | None = None
    url: str | None = None
    ready_at: datetime | None = None
    home: Home | None = None
    token_hash: str | None = None
    """Of the timeline token; None once it is revoked."""
    last_seq: int = 0
    retired: bool = False
    """Its server was deleted: the record goes once nothing is held any more."""

    @property
    def holds(self) -> bool:
        """Whether it holds resources of a machine."""
        return self.state in HOLDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What a launch needs and nobody may read; scrubbed once it is ready or over."""

    environment: dict[str, str] = field(repr=False)
    arguments: tuple[str, ...] = ()
    timeline_token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """One (allocation, epoch) that was given to a machine.

    Kept beyond its end until the machine has forgotten it, so that a late report or
    inventory is told apart from a foreign one.
    """

    allocation: str
    epoch: int
    machine: str
    workload: str
    generation: int
    resources: Resources
    driver: DriverName
    open: bool = True
    """The workload holds it.  At most one is open per workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRecord:
    """What the controller itself says about a machine, and the machine's own word."""

    name: str
    owner: str
    """The Hub user's name."""
    local: bool = False
    provider: str | None = None
    """Who supplies it; None: see ``supplier``."""
    token_hash: str
    admin_allows: Relation = Relation.OWNER
    owner_allows: Relation = Relation.OWNER
    labels: Mapping[str, str] = field(default_factory=dict)
    draining_by: str | None = None
    enrolled_at: datetime
    ledger_id: str | None = None
    boot_id: str | None = None
    agent_version: str | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """As the machine last reported them: its own word."""

    @property
    def supplier(self) -> str:
        """Who supplies it: where nothing else is recorded, the Hub or its owner."""
        return self.provider or ("local" if self.local else self.owner)
