"""Builders of controller records: they carry the defaults, a test names the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from fleet_contracts.allocations import State
from fleet_contracts.timeline import TimelineEvent, TimelineKind
from fleet_contracts.workloads import (
    Accelerator,
    Choice,
    DriverName,
    Principal,
    Resources,
    RuntimeSpec,
    ServerKey,
)
from fleet_hub.controller.audit_entry import Action, ActorRole, AuditEntry, TargetKind
from fleet_hub.controller.records import (
    EnrolmentCode,
    Issued,
    MachineRecord,
    Secrets,
    Workload,
)


NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


class ManualClock:
    """A clock that moves when a test moves it."""

    def __init__(self) -> None:
        """Begin at noon."""
        self.moment = NOON

    def now(self) -> datetime:
        """Return the moment that the test is at."""
        return self.moment

    def advance(self, seconds: float) -> None:
        """Let *seconds* go by."""
        self.moment += timedelta(seconds=seconds)


class CountingIds:
    """Identities that a test can predict."""

    def __init__(self, prefix: str = "") -> None:
        """Begin counting at 1; *prefix* tells processes apart."""
        self._prefix = prefix
        self._count = 0

    def _next(self, kind: str) -> str:
        self._count += 1
        return f"{self._prefix}{kind}{self._count}"

    def workload(self) -> str:
        """Return the next workload's id."""
        return self._next("w")

    def allocation(self) -> str:
        """Return the next allocation's id."""
        return self._next("a")

    def token(self) -> str:
        """Return the next secret."""
        return self._next("token-")


def a_principal(name: str = "alice", user_id: int = 1, **changes: Any) -> Principal:
    """Return a Hub user."""
    return Principal(user_id=user_id, name=name, **changes)


def a_record(name: str = "w1", server_id: int = 1, **changes: Any) -> Workload:
    """Return a workload that waits."""
    principal = changes.pop("principal", a_principal())
    values: dict[str, Any] = {
        "id": name,
        "key": ServerKey(user_id=principal.user_id, server_id=server_id),
        "generation": 1,
        "principal": principal,
        "server_name": "",
        "notebook": "alice-1-1",
        "choice": Choice.model_validate({"profile": "jupyter", "class": "small"}),
        "state": State.QUEUED,
        "line": 1,
        "asked_at": NOON,
        "attempt": "first",
    }
    return Workload(**(values | changes))


def an_event(seq: int = 1, **changes: Any) -> TimelineEvent:
    """Return a timeline entry."""
    values: dict[str, Any] = {
        "seq": seq,
        "generation": 1,
        "at": NOON,
        "kind": TimelineKind.NOTE,
        "state": State.QUEUED,
    }
    return TimelineEvent(**(values | changes))


def an_issued(allocation: str = "a1", epoch: int = 1, **changes: Any) -> Issued:
    """Return an allocation that was given to a machine."""
    values: dict[str, Any] = {
        "allocation": allocation,
        "epoch": epoch,
        "machine": "box",
        "workload": "w1",
        "generation": 1,
        "resources": Resources(cpu_milli=1000, memory_bytes=1 << 30),
        "driver": DriverName.NATIVE,
    }
    return Issued(**(values | changes))


def a_machine_record(name: str = "box", **changes: Any) -> MachineRecord:
    """Return an enrolled machine of alice's."""
    values: dict[str, Any] = {
        "name": name,
        "owner": "alice",
        "local": True,
        "token_hash": "0" * 64,
        "enrolled_at": NOON,
    }
    return MachineRecord(**(values | changes))


def a_code(code_hash: str = "c" * 64, **changes: Any) -> EnrolmentCode:
    """Return a code that nobody has used, for a machine of alice's."""
    values: dict[str, Any] = {
        "code_hash": code_hash,
        "machine": "box",
        "owner": "alice",
        "made_by": "alice",
        "made_at": NOON,
        "expires_at": NOON + timedelta(minutes=15),
    }
    return EnrolmentCode(**(values | changes))


def an_entry(**changes: Any) -> AuditEntry:
    """Return a line of the audit log."""
    values: dict[str, Any] = {
        "at": NOON,
        "actor": "root",
        "role": ActorRole.ADMIN,
        "action": Action.DRAINED,
        "kind": TargetKind.MACHINE,
        "target": "box",
    }
    return AuditEntry(**(values | changes))


def some_secrets(**changes: Any) -> Secrets:
    """Return what a launch needs."""
    values: dict[str, Any] = {
        "environment": {"JUPYTERHUB_API_TOKEN": "very-secret-value"},
        "timeline_token": "timeline-secret",
    }
    return Secrets(**(values | changes))


def a_runtime(**changes: Any) -> RuntimeSpec:
    """Return a selected runtime."""
    values: dict[str, Any] = {
        "name": "jupyter",
        "driver": DriverName.NATIVE,
        "ref": "jupyter",
        "accelerator": Accelerator.CPU,
        "catalog_digest": "d",
    }
    return RuntimeSpec(**(values | changes))
