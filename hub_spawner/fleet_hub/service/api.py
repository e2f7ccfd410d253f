"""The public API: own workloads, the catalog without refs, and the machines' state."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field
from typing_extensions import override

from fleet_contracts.catalog import public_view
from fleet_hub.controller import releasing, stopping
from fleet_hub.service.base import NoXsrf
from fleet_hub.service.machine_document import fleet_document
from fleet_hub.service.people import PersonHandler
from fleet_hub.service.timeline import TimelineAnswers


class AskForRelease(BaseModel):
    """Whom to ask."""

    holder: Annotated[str, Field(min_length=1, max_length=64)]
    """The handle of the holder, as the explanation of the wait has it."""


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
        record = self.acted_on(workload)
        by = self.visitor.actor_of(record)
        stopping.leave(self.core, record, actor=by.role.value, by=by)
        self.answer({"workload": workload, "left": True})


class WorkloadAskHandler(PersonHandler):
    """Asking a holder for what a workload waits for, for programs."""

    @override
    def post(self, workload: str) -> None:
        """Ask; idempotent."""
        record, asked = self.acted_on(workload), self.body(AskForRelease)
        by = self.visitor.actor_of(record)
        told = releasing.ask(self.core, record, asked.holder, by=by)
        self.answer(
            {"workload": workload, "asked": True, "asked_at": told.at.isoformat()}
        )


class MachinesHandler(PersonHandler):
    """All machines, with what they run that nobody here issued."""

    @override
    def get(self) -> None:
        """Answer with each machine's record and state."""
        self.require_sight()
        self.answer(fleet_document(self.core))
