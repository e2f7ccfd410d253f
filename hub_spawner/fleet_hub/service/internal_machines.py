"""Machines for the Hub's own installation and for its terminal."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field
from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.base import Message
from fleet_contracts.language import mark
from fleet_hub.audit_words import told
from fleet_hub.controller import enrolling
from fleet_hub.controller.audit import LONGEST_WHY
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.service.base import FleetHandler, SpawnerHandler
from fleet_hub.service.deeds import DEEDS, LONGEST_CHOICE, Outcome
from fleet_hub.service.machine_document import fleet_document


MOST_ENTRIES: Final = 1000
Provider = Annotated[str, Field(min_length=1, max_length=100)]
UNNAMED: Final = "somebody"
"""Who does something in a terminal and does not say who they are."""
ActorName = Annotated[str, Field(min_length=1, max_length=255)]


class Enrolment(Message):
    """A machine of the Hub's own installation."""

    name: str
    owner: str
    local: bool = False
    provider: Provider | None = None


class CodeRequest(Enrolment):
    """A machine that is about to join, and who says so in a terminal."""

    by: ActorName = UNNAMED


class DeedRequest(Message):
    """Who does something in a terminal, and what they chose."""

    by: ActorName = UNNAMED
    choice: Annotated[str, Field(max_length=LONGEST_CHOICE)] = ""
    why: Annotated[str, Field(max_length=LONGEST_WHY)] = ""


class TellsCodes(FleetHandler):
    """Answers with what came of a deed, and with codes."""

    def tell_code(self, code: str) -> None:
        """Finish with a new code, and where the machine uses it."""
        self.set_status(201)
        self.answer(self._told(code))

    def tell_outcome(self, machine: str, outcome: Outcome) -> None:
        """Finish with what came of a deed."""
        answer = {"machine": machine, "asked": outcome.asked, "said": outcome.said}
        if outcome.code is not None:
            answer |= self._told(outcome.code)
        self.answer(answer)

    def _told(self, code: str) -> dict[str, Any]:
        return {
            "code": code,
            "seconds": self.core.settings.code_seconds,
            "url": self.context.public_url,
        }


class TellsAudit(FleetHandler):
    """Answers with the audit log."""

    def tell_audit(self) -> None:
        """Finish with the page of it that the query asks for, newest first."""
        limit = int(self.number("limit", 100))
        before = int(self.number("before", 0))
        entries = self.core.store.audit(
            before=before if before > 0 else None,
            limit=min(max(limit, 1), MOST_ENTRIES),
            target=self.get_query_argument("target", ""),
        )
        self.answer({"entries": [told(item) for item in entries]})


class MachinesHandler(SpawnerHandler):
    """The machines, and the enrolment of the local one."""

    @override
    def get(self) -> None:
        """Answer with each machine's record and state."""
        self.answer(fleet_document(self.core))

    @override
    def post(self) -> None:
        """Answer with a new token; the machine's earlier one is void."""
        request = self.body(Enrolment)
        token = enrolling.enrol(
            self.core,
            name=request.name,
            owner=request.owner,
            local=request.local,
            provider=request.provider,
        )
        self.set_status(201)
        self.answer({"machine": request.name, "token": token})


class CodesHandler(SpawnerHandler, TellsCodes):
    """Codes with which machines join."""

    @override
    def post(self) -> None:
        """Answer with a code, and where the machine uses it."""
        request = self.body(CodeRequest)
        code = enrolling.make_code(
            self.core,
            terminal(request.by),
            name=request.name,
            owner=request.owner,
            local=request.local,
            provider=request.provider,
        )
        self.tell_code(code)


class MachineDeedHandler(SpawnerHandler, TellsCodes):
    """One deed, from a terminal of the Hub's own machine."""

    @override
    def post(self, machine: str, deed: str) -> None:
        """Do it."""
        if machine not in self.core.model.machines:
            raise HTTPError(404, reason=mark("There is no such machine"))
        request = self.body(DeedRequest) if self.request.body else DeedRequest()
        actor = terminal(request.by, request.why)
        outcome = DEEDS[deed].run(self.core, actor, machine, request.choice)
        self.tell_outcome(machine, outcome)


class AuditHandler(SpawnerHandler, TellsAudit):
    """The audit log, newest first."""

    @override
    def get(self) -> None:
        """Answer with a page of it."""
        self.tell_audit()


def terminal(name: str, why: str = "") -> Actor:
    """Return whoever sits at a terminal as the audit log knows them."""
    return Actor(name=name, role=ActorRole.TERMINAL, why=why)
