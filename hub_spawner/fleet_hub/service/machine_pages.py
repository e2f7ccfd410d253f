"""The machines: a list, a page for each, what can be done there, and enrolment."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.language import mark, translated
from fleet_hub.audit_words import RELATIONS
from fleet_hub.controller import enrolling
from fleet_hub.controller.audit import LONGEST_WHY
from fleet_hub.controller.records import MachineRecord
from fleet_hub.service.deeds import DEEDS, LONGEST_CHOICE, SAID
from fleet_hub.service.listings import Column, ListingPage
from fleet_hub.service.machine_views import machine_row, machine_view
from fleet_hub.service.pages import PageHandler
from fleet_hub.service.transport import is_protected, origin_of


PAGE_SIZE: Final = 50


class EnrolmentPages(PageHandler):
    """Shows a code together with the command in which it is used."""

    def show_code(self, machine: str, code: str, said: str = "") -> None:
        """Finish with the page that shows *code* this once."""
        url = self.context.public_url or (origin_of(self.request) + self.context.prefix)
        self.render_page(
            "enrolled.html",
            machine=machine,
            said=said,
            command=f"fleet-agent enrol --controller {url} --code {code}",
            minutes=int(self.core.settings.code_seconds // 60),
            is_protected=is_protected(
                self.request, self.core.settings.trusted_networks
            ),
        )


class MachinesHandler(EnrolmentPages, ListingPage):
    """All machines for whoever sees all, a person's own machines for everybody else."""

    @override
    def get(self) -> None:
        """Show a page of them; it needs no script."""
        listing = self.listing(
            self._columns(),
            (
                record
                for _, record in sorted(self.core.model.machines.items())
                if self.visitor.may_see_machine(record)
            ),
            size=PAGE_SIZE,
        )
        if self.is_exported(listing, "machines", self.core.clock.now()):
            return
        self.render_page(
            "machines.html",
            as_of=self.core.clock.now(),
            listing=listing,
            xsrf_token=self.xsrf_token.decode(),
            machines=[machine_row(self.core, record) for record in listing.rows],
            may_enrol=self.visitor.admin or self.context.users_may_enrol,
            xsrf_form_html=self.xsrf_form_html(),
        )

    @override
    def post(self) -> None:
        """Make a code for a new machine, and show it."""
        if not self.visitor.admin and not self.context.users_may_enrol:
            raise HTTPError(403, reason=mark("Only admins enrol machines here"))
        name = self.form_text("name")
        owner = self.form_text("owner") if self.visitor.admin else ""
        actor = self.visitor.actor()
        code = enrolling.make_code(
            self.core, actor, name=name, owner=owner or self.visitor.name
        )
        self.show_code(name, code)

    def _columns(self) -> tuple[Column[MachineRecord], ...]:
        # What a machine says of its hardware is read for the rows that are shown alone.
        model = self.core.model
        return (
            Column(key="machine", title=mark("Machine"), value=lambda row: row.name),
            Column(
                key="state",
                title=mark("State"),
                value=lambda row: (
                    "online" if model.presence[row.name].online else "offline"
                ),
            ),
            Column(key="owner", title=mark("Owner"), value=lambda row: row.owner),
            Column(key="drained_by", value=lambda row: row.draining_by),
            Column(
                key="holds",
                title=mark("Holds"),
                value=lambda row: sum(1 for _ in model.holders(row.name)),
            ),
            Column(
                key="agent", title=mark("Agent"), value=lambda row: row.agent_version
            ),
        )


class MachineHandler(PageHandler):
    """One machine: who it is, what it says of itself, what it holds."""

    @override
    def get(self, machine: str) -> None:
        """Show it."""
        record = self.seen_machine(machine)
        self.render_page(
            "machine.html",
            machine=machine_view(self.core, record, self.visitor),
            said=translated(SAID.get(self.get_query_argument("did", ""), "")),
            relations=RELATIONS,
            may_act=self.visitor.may_govern(record),
            xsrf_form_html=self.xsrf_form_html(),
        )


class DeedHandler(EnrolmentPages):
    """The buttons of a machine's page."""

    @override
    def post(self, machine: str, deed: str) -> None:
        """Do it, and show what became of it."""
        record = self.governed(machine)
        if DEEDS[deed].needs_admin:
            self.require_admin()
        outcome = DEEDS[deed].run(
            self.core,
            self.visitor.actor(record, self.form_text("why", LONGEST_WHY)),
            record.name,
            self.form_text("choice", LONGEST_CHOICE),
        )
        if outcome.code is not None:
            self.show_code(record.name, outcome.code, outcome.said)
            return
        query = urlencode({"did": outcome.word})
        self.redirect(
            f"{self.context.prefix}machines/{record.name}?{query}",
            status=HTTPStatus.SEE_OTHER,
        )
