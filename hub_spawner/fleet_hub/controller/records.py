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
from fleet_hub.scheduling.decisions import Rule
from fleet_hub.scheduling.likely import Outset, Waited
from fleet_hub.scheduling.likely_ends import Ran
from fleet_hub.scheduling.snapshot import Reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseAsk:
    """Somebody who waits asked for what a workload holds."""

    user_id: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Where a workload was put: what it holds, and how far its agent got."""

    machine: str
    allocation: str
    epoch: int
    runtime: RuntimeSpec = field(repr=False)
    class_name: str
    resources: Resources
    devices_asked: int = 0
    """What its class asked for: CPU work on a Mac asked for no device."""
    limit_seconds: float | None = None
    since: datetime
    ends_by: float | None = None
    """When it will have ended however slowly it starts; None: nobody knows."""
    launched: bool = False
    """The agent was told, or may have been: only its word ends the allocation."""
    heard: bool = False
    """The agent has reported on it: the launch need not be sent again."""
    report_seq: int = 0
    """The last report that was taken in."""
    claim_by: datetime | None = None
    """Until when the Hub's start must come; None: no such limit runs."""
    lost_devices: tuple[str, ...] = ()
    """Which of its devices are not there now, by UUID.  They stay its own."""
    idle_limit_seconds: float | None = None
    """How long it may compute nothing; None: as long as it likes."""
    warned_at: float | None = None
    """When its user was last told that it ends unless it computes."""
    asked: tuple[ReleaseAsk, ...] = ()
    """Who asked for what it holds: each of them once."""


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
class Origin:
    """Where a workload's files are while it begins elsewhere, until it is ready."""

    home: Home
    notebook: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """How a workload last got its machine."""

    at: float
    waited: float
    """Seconds, from asking."""
    class_name: str
    machine: str
    rule: Rule


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
    profile_version: str | None = None
    """Of the profile when it was asked for, or placed since."""
    state: State
    line: int
    """Its place in the order of asking; lower came first."""
    asked_at: datetime
    attempt: str
    parked: bool = False
    absent: bool = False
    """The Hub was asked to start it while nobody attended, and nobody has come since."""
    explanation: Explanation | None = None
    promise: float | None = None
    reservation: Reservation | None = None
    """Where that promise is kept."""
    outset: Outset | None = None
    """That promise as it was first made."""
    waited: Waited | None = None
    """How its last wait with a promise went."""
    ran: Ran | None = None
    """How long it last ran."""
    decided: Decided | None = None
    """How its last turn came."""
    moved: int = 0
    """Where admins put it: above 0 before everybody else, below 0 behind."""
    rejected_by: Mapping[str, Reason] = field(default_factory=dict)
    rejections: int = 0
    assignment: Assignment | None = None
    stop: StopIntent | None = None
    url: str | None = None
    ready_at: datetime | None = None
    home: Home | None = None
    origin: Origin | None = None
    """What it goes back to unless it gets ready elsewhere; None: it has not left."""
    token_hash: str | None = None
    """Of the timeline token; None once it is revoked."""
    last_seq: int = 0
    retired: bool = False
    """Its server was deleted: the record goes once nothing is held any more."""

    @property
    def holds(self) -> bool:
        """Whether it holds resources of a machine."""
        return self.state in HOLDING

    @property
    def is_copied(self) -> bool:
        """Whether it begins with a copy of its files."""
        return self.origin is not None and self.choice.files == "copy"


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
class EnrolmentCode:
    """A single-use word with which one machine joins; only its hash is kept."""

    code_hash: str = field(repr=False)
    machine: str
    owner: str
    local: bool = False
    provider: str | None = None
    made_by: str
    made_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovedAddress:
    """Where notebook traffic of a machine goes, once the controller has tried it."""

    claimed: str
    """As the machine says it: a name or an address."""
    address: str
    """What it resolved to when it was tried; routes use this one."""
    approved_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRecord:
    """What the controller itself says about a machine, and the machine's own word."""

    name: str
    owner: str
    """The Hub user's name; empty: whoever it was is gone, and nobody is the owner."""
    owner_id: int | None = None
    """The Hub's id of the owner, from their first ask on: names are given again."""
    local: bool = False
    provider: str | None = None
    """Who supplies it; None: see ``supplier``."""
    token_hash: str
    """Of its token; empty: revoked, so that nobody speaks for it."""
    admin_allows: Relation = Relation.OWNER
    owner_allows: Relation = Relation.OWNER
    members: tuple[str, ...] = ()
    """Hub users whom the machine serves where it serves its members."""
    member_groups: tuple[str, ...] = ()
    """Hub groups whose people are members."""
    labels: Mapping[str, str] = field(default_factory=dict)
    draining_by: str | None = None
    enrolled_at: datetime
    address: ApprovedAddress | None = None
    """None: none was approved; the Hub's own machine needs none."""
    address_fault: Explanation | None = None
    """Why the address that it last told was not approved."""
    ledger_id: str | None = None
    boot_id: str | None = None
    agent_version: str | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """As the machine last reported them: its own word."""

    @property
    def supplier(self) -> str:
        """Who supplies it: where nothing else is recorded, the Hub or its owner."""
        return self.provider or ("local" if self.local else self.owner)
