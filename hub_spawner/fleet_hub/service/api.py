"""The public API: own workloads, the catalog without refs, and the machines' state."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.capabilities import WorkerCapabilities
from fleet_contracts.catalog import public_view
from fleet_contracts.identity import with_identity
from fleet_contracts.protocol import Redetect
from fleet_hub.controller import stopping
from fleet_hub.controller.model import Presence
from fleet_hub.controller.records import MachineRecord
from fleet_hub.service.base import FleetHandler, NoXsrf
from fleet_hub.service.people import PersonHandler
from fleet_hub.service.timeline import TimelineAnswers


class HealthHandler(NoXsrf):
    """Whether the service answers; tells nothing else."""

    @override
    def get(self) -> None:
        """Answer 200."""
        self.answer({"status": "ok"})


class ProfilesHandler(PersonHandler):
    """The catalog as users may read it."""

    @override
    def get(self) -> None:
        """Answer with profiles and classes, never with a ref."""
        self.answer(public_view(self.core.catalogs.current()))


class WorkloadTimelineHandler(PersonHandler, TimelineAnswers):
    """The timeline of one of the visitor's workloads."""

    @override
    async def get(self, workload: str) -> None:
        """Answer at once, or once there is something new."""
        self.seen(workload)
        await self.answer_timeline(workload)


class WorkloadLeaveHandler(PersonHandler):
    """Leaving the line, for programs."""

    @override
    def post(self, workload: str) -> None:
        """Leave; idempotent."""
        record = self.seen(workload)
        stopping.leave(self.core, record, actor=_actor(self, record.principal.name))
        self.answer({"workload": workload, "left": True})


class AdminHandler(PersonHandler):
    """For the Hub's admins."""

    def require_admin(self) -> None:
        """End the request of anybody else.

        Raises:
            HTTPError: 403.
        """
        if not self.visitor.admin:
            raise HTTPError(403, reason="This is for admins")


class MachinesHandler(AdminHandler):
    """All machines, with what they run that nobody here issued."""

    @override
    def get(self) -> None:
        """Answer with each machine's record and state."""
        self.require_admin()
        model = self.core.model
        self.answer(
            {
                "machines": [
                    machine_view(record, model.presence[name])
                    for name, record in sorted(model.machines.items())
                ]
            }
        )


class MachineLostHandler(AdminHandler):
    """An admin's word that nothing runs on a machine any more."""

    @override
    def post(self, machine: str) -> None:
        """Give everything back that the machine held."""
        self.require_admin()
        stopping.declare_lost(self.core, machine)
        self.answer({"machine": machine, "lost": True})


class MachineRedetectHandler(PersonHandler):
    """A request that a machine looks at itself again, now."""

    @override
    def post(self, machine: str) -> None:
        """Ask the machine; its answer comes as a change of its capabilities."""
        record = self.core.model.machines.get(machine)
        may = self.visitor.admin or (record and record.owner == self.visitor.name)
        if record is None or not may:
            # Whoever may not ask does not learn which machines there are.
            raise HTTPError(404)
        asked = self.core.links.send(machine, Redetect())
        self.answer({"machine": machine, "asked": asked})


def machine_view(record: MachineRecord, presence: Presence) -> dict[str, Any]:
    """Return what an admin reads of a machine; its capabilities are its own word."""
    return {
        "name": record.name,
        "owner": record.owner,
        "local": record.local,
        "online": presence.online,
        "since": presence.since.isoformat(),
        "inventory_known": presence.inventory_known,
        "draining_by": record.draining_by,
        "agent_version": record.agent_version,
        "foreign_allocations": [
            {"allocation": allocation, "epoch": epoch}
            for allocation, epoch in sorted(presence.foreign)
        ],
        "capabilities": _picture(record),
    }


def _picture(record: MachineRecord) -> dict[str, Any]:
    """Return the machine's own word about its hardware, and ours about who it is."""
    try:
        told = WorkerCapabilities.model_validate(record.capabilities)
    except ValidationError:
        told = WorkerCapabilities()
    picture = with_identity(
        told,
        name=record.name,
        owner=record.owner,
        provider=record.owner,
        recorded_at=record.enrolled_at,
    )
    return picture.model_dump(mode="json", by_alias=True)


def _actor(handler: FleetHandler, owner: str) -> str:
    visitor = getattr(handler, "visitor", None)
    return "user" if visitor is not None and visitor.name == owner else "admin"
