"""What somebody whom the Hub knows may see, and what they may act on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleet_hub import fleet_scopes
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.records import MachineRecord, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody the Hub knows."""

    name: str
    admin: bool = False
    """Administers the fleet."""
    reader: bool = False
    """Sees all of the fleet, as an admin does."""
    groups: tuple[str, ...] = ()

    @property
    def sees_all(self) -> bool:
        """Whether everybody's is theirs to see."""
        return self.admin or self.reader

    def may_see(self, record: Workload) -> bool:
        """Whether *record* is theirs, or they see all."""
        return self.sees_all or self._is_own(record)

    def may_act_on(self, record: Workload) -> bool:
        """Whether *record* is theirs, or they are an admin."""
        return self.admin or self._is_own(record)

    def may_see_machine(self, record: MachineRecord) -> bool:
        """Whether *record* is their machine, or they see all."""
        return self.sees_all or self._owns(record)

    def may_govern(self, record: MachineRecord) -> bool:
        """Whether *record* is their machine, or they are an admin."""
        return self.admin or self._owns(record)

    def _is_own(self, record: Workload) -> bool:
        return bool(self.name) and record.principal.name == self.name

    def _owns(self, record: MachineRecord) -> bool:
        return bool(self.name) and record.owner == self.name

    def actor(self, record: MachineRecord | None = None, why: str = "") -> Actor:
        """Return them as the audit log knows them, of this machine if any.

        *why* is the reason that they gave.
        """
        if self.admin:
            return Actor(name=self.name, role=ActorRole.ADMIN, why=why)
        is_owner = record is not None and self._owns(record)
        role = ActorRole.OWNER if is_owner else ActorRole.USER
        return Actor(name=self.name, role=role, why=why)

    def actor_of(self, record: Workload, why: str = "") -> Actor:
        """Return them as the audit log knows them, of this workload."""
        role = ActorRole.USER if self._is_own(record) else ActorRole.ADMIN
        return Actor(name=self.name, role=role, why=why)


def visitor_of(model: Mapping[str, Any], *, by_token: bool = False) -> Visitor:
    """Return whom the Hub means by *model*: its admins, and whom a role lets in.

    *by_token*: a token said so itself, and not a log-in.
    """
    scopes = frozenset(map(str, model.get("scopes") or ()))
    is_hub_admin = bool(model.get("admin"))
    if by_token and fleet_scopes.only_reads(scopes):
        is_hub_admin = False
    return Visitor(
        name=model["name"],
        admin=is_hub_admin or fleet_scopes.administers(scopes),
        reader=fleet_scopes.reads(scopes),
        groups=tuple(map(str, model.get("groups") or ())),
    )
