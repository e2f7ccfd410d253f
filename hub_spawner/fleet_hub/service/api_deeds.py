"""What people do to machines and in the line with a program, and who did it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.base import Message
from fleet_contracts.language import mark
from fleet_hub.controller import enrolling, moving
from fleet_hub.controller.audit import LONGEST_WHY
from fleet_hub.controller.moving import Place
from fleet_hub.service.base import SpawnerHandler
from fleet_hub.service.deeds import DEEDS
from fleet_hub.service.internal_machines import (
    UNNAMED,
    ActorName,
    DeedRequest,
    Enrolment,
    TellsAudit,
    TellsCodes,
    terminal,
)
from fleet_hub.service.people import PersonHandler


class MoveRequest(Message):
    """Another place in the line, and why."""

    place: Place
    why: Annotated[str, Field(max_length=LONGEST_WHY)] = ""
    by: ActorName = UNNAMED
    """Who sits at a terminal; of others the Hub says who they are."""


class MoveHandler(PersonHandler):
    """Giving somebody another place in the line."""

    @override
    def post(self, workload: str) -> None:
        """Move; idempotent but for who is first of the first."""
        self.require_admin()
        record = self.seen(workload)
        request = self.body(MoveRequest)
        moving.move(
            self.core, record, request.place, by=self.visitor.actor(why=request.why)
        )
        self.answer({"workload": workload, "place": request.place.value})


class MoveForOperator(SpawnerHandler):
    """The same, from a terminal of the Hub's own machine."""

    @override
    def post(self, workload: str) -> None:
        """Move."""
        record = self.core.model.workloads.get(workload)
        if record is None:
            raise HTTPError(404, reason=mark("There is no such workload"))
        request = self.body(MoveRequest)
        by = terminal(request.by, request.why)
        moving.move(self.core, record, request.place, by=by)
        self.answer({"workload": workload, "place": request.place.value})


class MachineDeedHandler(PersonHandler, TellsCodes):
    """One deed to a machine, by its owner or an admin."""

    @override
    def post(self, machine: str, deed: str) -> None:
        """Do it."""
        if DEEDS[deed].needs_admin:
            self.require_admin()
        record = self.governed(machine)
        request = self.body(DeedRequest) if self.request.body else DeedRequest()
        actor = self.visitor.actor(record, request.why)
        outcome = DEEDS[deed].run(self.core, actor, record.name, request.choice)
        self.tell_outcome(machine, outcome)


class CodesHandler(PersonHandler, TellsCodes):
    """Codes with which machines join."""

    @override
    def post(self) -> None:
        """Answer with a code, and where the machine uses it.

        Raises:
            HTTPError: 403; the visitor may not enrol that machine.
        """
        request = self.body(Enrolment)
        self._check_may(request)
        code = enrolling.make_code(
            self.core,
            self.visitor.actor(),
            name=request.name,
            owner=request.owner,
            provider=request.provider,
        )
        self.tell_code(code)

    def _check_may(self, request: Enrolment) -> None:
        if request.local:
            # Whoever may say that sits at its terminal.
            raise HTTPError(403, reason=mark("Enrol the Hub's own machine on itself"))
        if self.visitor.admin:
            return
        if not self.context.users_may_enrol:
            raise HTTPError(403, reason=mark("Only admins enrol machines here"))
        if request.provider or request.owner != self.visitor.name:
            raise HTTPError(
                403, reason=mark("Only admins enrol the machines of others")
            )


class AuditHandler(PersonHandler, TellsAudit):
    """The audit log, newest first."""

    @override
    def get(self) -> None:
        """Answer with a page of it."""
        self.require_sight()
        self.tell_audit()
