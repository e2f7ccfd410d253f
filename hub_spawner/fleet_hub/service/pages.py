"""The pages for people: their workloads, and one workload with its timeline."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.allocations import ENDED, State
from fleet_hub.controller import stopping
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.records import Workload
from fleet_hub.controller.timelines import etag_of, timeline_of
from fleet_hub.controller.words import headline_of
from fleet_hub.service.people import PersonHandler
from fleet_hub.service.views import view_of


_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


class PageHandler(PersonHandler):
    """A handler that answers with HTML, errors included."""

    wants_page = True

    def render_page(self, template: str, **values: Any) -> None:
        """Finish with *template*; every value in it is escaped."""
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(
            _TEMPLATES.get_template(template).render(
                prefix=self.context.prefix, hub_base=self.context.hub_base, **values
            )
        )

    @override
    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = kwargs.get("exc_info", (None, None, None))[1]
        message = self._reason
        if isinstance(error, RequestRefusedError):
            self.set_status(HTTPStatus.CONFLICT)
            message = error.explanation.detail or error.explanation.reason.value
        elif not isinstance(error, HTTPError):
            message = "Something went wrong here. Nothing was changed; try again."
        self.render_page("error.html", status=self.get_status(), message=message)


class OwnWorkloadsHandler(PageHandler):
    """What the visitor has asked for, and for admins what everybody has."""

    @override
    def get(self) -> None:
        """Show the list."""
        records = [
            record
            for record in self.core.model.workloads.values()
            if self.visitor.may_see(record)
        ]
        records.sort(key=lambda record: (record.state in ENDED, -record.line))
        self.render_page(
            "workloads.html",
            visitor=self.visitor,
            workloads=[
                {
                    "record": record,
                    "headline": headline_of(self.core, record),
                    "server_url": self.server_url(record),
                    "is_ready": record.state is State.READY,
                }
                for record in records
            ],
        )


class WorkloadHandler(PageHandler):
    """One workload: the headline, five phases, and what can be done."""

    @override
    def get(self, workload: str) -> None:
        """Show the page; it follows the workload by itself where scripts run."""
        self._show(self.seen(workload))

    def _show(self, record: Workload) -> None:
        timeline = timeline_of(self.core, record)
        self.render_page(
            "workload.html",
            view=view_of(timeline),
            timeline=timeline,
            etag=etag_of(timeline),
            record=record,
            is_own=record.principal.name == self.visitor.name,
            is_ready=record.state is State.READY,
            server_url=self.server_url(record),
            xsrf_form_html=self.xsrf_form_html(),
        )


class LeaveHandler(PageHandler):
    """Leaving the line from the page."""

    @override
    def post(self, workload: str) -> None:
        """Leave, and show what became of it."""
        record = self.seen(workload)
        own = record.principal.name == self.visitor.name
        stopping.leave(self.core, record, actor="user" if own else "admin")
        url = f"{self.context.prefix}workloads/{workload}"
        self.redirect(url, status=HTTPStatus.SEE_OTHER)
