"""What the controller needs of the world; ``fleet_hub.adapters`` provides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from fleet_contracts.catalog import Catalog
from fleet_contracts.protocol import Goodbye, ToAgent
from fleet_contracts.timeline import TimelineEvent
from fleet_hub.controller.audit_entry import AuditEntry, Numbered
from fleet_hub.controller.records import (
    EnrolmentCode,
    Issued,
    MachineRecord,
    Secrets,
    Workload,
)
from fleet_hub.controller.spans import Span, Total
from fleet_hub.scheduling.snapshot import Usage


@dataclass(slots=True, kw_only=True)
class Change:
    """Everything that one decision writes: all of it becomes durable, or nothing."""

    workloads: dict[str, Workload] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    """Workloads that are forgotten, with their events and secrets."""
    events: list[tuple[str, TimelineEvent]] = field(default_factory=list)
    """By workload.  An event with progress replaces the step's earlier one."""
    secrets: dict[str, Secrets | None] = field(default_factory=dict)
    """None: scrubbed."""
    issued: dict[str, Issued | None] = field(default_factory=dict)
    """By allocation; None: the machine has forgotten it."""
    machines: dict[str, MachineRecord] = field(default_factory=dict)
    codes: dict[str, EnrolmentCode | None] = field(default_factory=dict)
    """By hash; None: used, expired or withdrawn."""
    audit: list[AuditEntry] = field(default_factory=list)
    usage: dict[int, Usage] = field(default_factory=dict)
    """What users have used, by the Hub's user id."""
    spans: list[Span] = field(default_factory=list)
    """What was released, and how long it was held."""
    renamed: dict[tuple[int, str], str] = field(default_factory=dict)
    """What a user is called now, by the Hub's id and the name before; accounts follow."""
    generation: int | None = None
    """A new store generation, when a machine has seen a higher epoch than ours."""

    def __bool__(self) -> bool:
        """Whether there is anything to write."""
        return bool(
            self.workloads
            or self.removed
            or self.events
            or self.secrets
            or self.issued
            or self.machines
            or self.codes
            or self.audit
            or self.usage
            or self.spans
            or self.renamed
            or self.generation is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Everything but events and secrets, as read when the store is opened."""

    generation: int
    """Higher than at any opening before: the upper part of every new epoch."""
    workloads: tuple[Workload, ...]
    issued: tuple[Issued, ...]
    machines: tuple[MachineRecord, ...]
    codes: tuple[EnrolmentCode, ...] = ()
    usage: Mapping[int, Usage] = field(default_factory=dict)


EVENTS_KEPT = 500
"""Timeline entries kept of one workload; older ones are dropped."""


class Store(Protocol):
    """The durable truth.  One process writes to it; every call is short."""

    def load(self) -> Contents:
        """Return what was durable when the store was opened."""

    def commit(self, change: Change) -> None:
        """Make *change* durable before returning.

        Raises:
            StoreWriteError: nothing of it was written.
        """

    def events(self, workload: str, *, after: int = 0) -> tuple[TimelineEvent, ...]:
        """Return the events of *workload* with a higher ``seq`` than *after*."""

    def secrets(self, workload: str) -> Secrets | None:
        """Return what a launch of *workload* needs, unless it was scrubbed."""

    def audit(
        self, *, before: int | None = None, limit: int = 100, target: str = ""
    ) -> tuple[Numbered, ...]:
        """Return the newest entries of the audit log, newest first.

        Only those with a lower number than *before*, and about *target*, if given.
        """

    def totals(self, since: int, until: int) -> tuple[Total, ...]:
        """Return what was released and held within a period, in microseconds."""

    def write_back(self) -> None:
        """Do what commits put off: called while nobody waits for one."""

    def tidy(self) -> None:
        """Take scrubbed secrets out of whatever journal the store keeps."""

    def close(self) -> None:
        """Let another process write.  Idempotent."""


class AgentLinks(Protocol):
    """The live links to agents."""

    def send(self, machine: str, message: ToAgent) -> bool:
        """Queue *message* for *machine*; False: there is no live link.

        Never waits and never raises: whatever matters is sent again after the next
        hello.
        """

    def dismiss(self, machine: str, goodbye: Goodbye) -> None:
        """Say *goodbye* to the link of *machine*, if it has one, and close it."""


class StartAnswer(StrEnum):
    """What the Hub said to a request to start a server."""

    STARTED = "started"
    UNDER_WAY = "under_way"
    """A start is in flight already, or the server runs."""
    LATER = "later"
    """It is busy with this server or with everybody; ask again."""
    GONE = "gone"
    """The user or server no longer exists."""
    REFUSED = "refused"
    """The Spawner itself refused or failed the start."""
    FORBIDDEN = "forbidden"
    """The controller's role lacks a scope; the operator's move."""
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartResult:
    """An answer, and how long the Hub asks to wait before the next try."""

    answer: StartAnswer
    retry_after_seconds: float | None = None


class HubApi(Protocol):
    """The little that the controller may ask of the Hub."""

    async def start_server(self, user: str, server_name: str) -> StartResult:
        """Start a server with the options that it was last asked with.

        Never raises: every failure is an answer.
        """

    async def check_routes(self) -> bool:
        """Ask the Hub to route every running server now; False: it did not."""


class Network(Protocol):
    """What the controller can find out about addresses."""

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of *host*, itself if it is one; empty: it has none."""

    async def try_address(self, address: str, port: int, nonce: str) -> str | None:
        """Return what answers to *nonce* there; None: nothing does, in time."""

    def is_hubs(self, address: str) -> bool:
        """Whether *address* is the Hub's, its proxy's or this machine's own."""


class NoNetwork:
    """A controller that reaches nobody, for a fleet of the Hub's own machine."""

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return nothing."""
        return ()

    async def try_address(self, address: str, port: int, nonce: str) -> str | None:
        """Reach nobody."""
        return None

    def is_hubs(self, address: str) -> bool:
        """Know no address."""
        return False


class Clock(Protocol):
    """The time of day."""

    def now(self) -> datetime:
        """Return now, aware and in UTC."""


class Ids(Protocol):
    """Chance: identities and secrets that nobody can guess."""

    def workload(self) -> str:
        """Return a new workload's id."""

    def allocation(self) -> str:
        """Return a new allocation's id."""

    def token(self) -> str:
        """Return a new secret of at least 128 bits."""


class Catalogs(Protocol):
    """The admin's catalog, as of now."""

    def current(self) -> Catalog:
        """Return the last catalog that was valid."""
