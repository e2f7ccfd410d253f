"""The machines page: what each machine is, says of itself and holds, for whom it may."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlencode

from typing_extensions import override

from fleet_hub.controller import machines
from fleet_hub.service.machine_views import machine_view
from fleet_hub.service.pages import PageHandler


class MachinesHandler(PageHandler):
    """All machines for an admin, a person's own machines for everybody else."""

    @override
    def get(self) -> None:
        """Show them; the page needs no script."""
        records = [
            record
            for _, record in sorted(self.core.model.machines.items())
            if self.visitor.may_see_machine(record)
        ]
        self.render_page(
            "machines.html",
            visitor=self.visitor,
            machines=[machine_view(self.core, item, self.visitor) for item in records],
            asked=self.get_query_argument("asked", ""),
            away=self.get_query_argument("away", ""),
            xsrf_form_html=self.xsrf_form_html(),
        )


class RedetectHandler(PageHandler):
    """The button with which a machine is asked to look at itself again."""

    @override
    def post(self, machine: str) -> None:
        """Ask it, and show what became of it."""
        record = self.seen_machine(machine)
        asked = machines.look_again(self.core, record.name)
        query = urlencode({"asked" if asked else "away": record.name})
        self.redirect(
            f"{self.context.prefix}machines?{query}#machine-{record.name}",
            status=HTTPStatus.SEE_OTHER,
        )
