"""The pages for people: what is the same for all, and one workload with its timeline."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.allocations import ENDED, Phase, State
from fleet_contracts.language import (
    language,
    mark,
    say,
    speak,
    speak_of_another,
    translated,
)
from fleet_contracts.languages import language_of
from fleet_contracts.reasons import Holder
from fleet_contracts.sentences import holder_words, sentence
from fleet_contracts.timeline import Timeline
from fleet_hub.controller import releasing, stopping
from fleet_hub.controller.audit import LONGEST_WHY
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.records import Workload
from fleet_hub.controller.timelines import timeline_of
from fleet_hub.pages import TEMPLATES, words
from fleet_hub.pages.told import tell
from fleet_hub.service.base import FleetHandler
from fleet_hub.service.people import FOR_ADMINS, PersonHandler
from fleet_hub.service.visitors import Visitor


_TEMPLATES: Final = Environment(
    loader=FileSystemLoader([Path(__file__).with_name("templates"), TEMPLATES]),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals |= {"_": words.say, "_n": words.many}


_FOR_ALL: Final = (
    ("", mark("Servers")),
    ("machines", mark("Machines")),
    ("usage", mark("Usage")),
)
_FOR_READERS: Final = (
    ("line", mark("Line")),
    ("holds", mark("Holds")),
    ("profiles", mark("Profiles")),
    ("catalog", mark("Catalog")),
    ("audit", mark("Audit log")),
)


class PageHandler(PersonHandler):
    """A handler that answers with HTML, errors included."""

    wants_page = True

    def render_page(self, template: str, **values: Any) -> None:
        """Finish with *template*; every value in it is escaped."""
        self.speak()
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Content-Language", language().tag)
        self.set_header("Vary", "Accept-Language, Cookie, Authorization")
        visitor: Visitor | None = getattr(self, "visitor", None)
        given = {
            "prefix": self.context.prefix,
            "hub_base": self.context.hub_base,
            "language": language(),
            "visitor": visitor,
            "tabs": _tabs(visitor),
            "news": self.context.runner.news.number,
            "here": self.request.path.removeprefix(self.context.prefix),
        }
        self.finish(_TEMPLATES.get_template(template).render(**(given | values)))

    def speak(self) -> None:
        """Say everything from here on in the reader's language."""
        speak(language_of(self.request.headers.get("Accept-Language", "")))

    def form_text(self, name: str, longest: int = 255) -> str:
        """Return a short word of the form.

        Raises:
            HTTPError: 400; it is too long.
        """
        text = self.get_body_argument(name, "").strip()
        if len(text) > longest:
            raise HTTPError(400, reason=f"{name} is too long")
        return text

    @override
    async def prepare(self) -> None:
        """Find out who asks, and in which language."""
        await super().prepare()
        if self.request.method == "GET":
            # A deed is done in no language: what it leaves behind is for everybody.
            self.speak()

    @override
    def write_error(self, status_code: int, **kwargs: Any) -> None:
        self.speak()
        error = kwargs.get("exc_info", (None, None, None))[1]
        message = say(self._reason)
        if status_code == HTTPStatus.BAD_REQUEST:
            message = say("This was not understood: {detail}", detail=self._reason)
        if isinstance(error, RequestRefusedError):
            self.set_status(HTTPStatus.CONFLICT)
            detail = error.explanation.detail
            message = translated(detail) if detail else sentence(error.explanation)
        elif not isinstance(error, HTTPError):
            message = say("Something went wrong here. Nothing was changed; try again.")
        self.render_page(
            "error.html",
            status=self.get_status(),
            message=message,
            comes_with_login=self._reason == FOR_ADMINS and not self.shows_token,
        )


def _tabs(visitor: Visitor | None) -> list[tuple[str, str]]:
    """Return the pages that a visitor is led to, by path."""
    if visitor is None:
        return []
    led = [*_FOR_ALL, *(_FOR_READERS if visitor.sees_all else ())]
    return [(path, translated(name)) for path, name in led]


class WorkloadHandler(PageHandler):
    """One workload: the headline, five phases, and what can be done."""

    @override
    def get(self, workload: str) -> None:
        """Show the page; it follows the workload by itself where scripts run."""
        self._show(self.seen(workload))

    def _show(self, record: Workload) -> None:
        is_own = record.principal.name == self.visitor.name
        speak_of_another(is_another=not is_own)
        timeline = timeline_of(self.core, record)
        self.render_page(
            "workload.html",
            told=tell(timeline),
            timeline=timeline,
            document=timeline.model_dump(mode="json", by_alias=True, exclude_none=True),
            record=record,
            is_own=is_own,
            may_act=self.visitor.may_act_on(record),
            catalogue=words.catalogue(language()),
            is_ready=record.state is State.READY,
            holders=_holders(timeline),
            server_url=self.server_url(record),
            xsrf_form_html=self.xsrf_form_html(),
            # A script's request is believed with it alone: no other site can read it.
            xsrf_token=self.xsrf_token.decode(),
        )


def _holders(timeline: Timeline) -> list[tuple[Holder, str]]:
    """Return who is or can be asked for what is waited for, each in words."""
    why = timeline.explanation
    if timeline.phase is not Phase.WAITING or timeline.state in ENDED or why is None:
        return []
    return [
        (holder, holder_words(holder, timeline.as_of))
        for holder in why.holders
        if holder.handle is not None or holder.asked_at is not None
    ]


class LeaveHandler(PageHandler):
    """Leaving the line from the page."""

    @override
    def post(self, workload: str) -> None:
        """Leave, and show what became of it."""
        record = self.acted_on(workload)
        by = self.visitor.actor_of(record, self.form_text("why", LONGEST_WHY))
        stopping.leave(self.core, record, actor=by.role.value, by=by)
        url = f"{self.context.prefix}workloads/{workload}"
        self.redirect(url, status=HTTPStatus.SEE_OTHER)


class AskHandler(PageHandler):
    """Asking a holder for what a workload waits for, from the page."""

    @override
    def post(self, workload: str) -> None:
        """Ask, and show what is told now."""
        record = self.acted_on(workload)
        by = self.visitor.actor_of(record)
        releasing.ask(self.core, record, self.form_text("holder"), by=by)
        url = f"{self.context.prefix}workloads/{workload}"
        self.redirect(url, status=HTTPStatus.SEE_OTHER)


class MissingHandler(PageHandler):
    """Everything that is not there: a page for a browser, JSON for a program."""

    @override
    def check_xsrf_cookie(self) -> None:
        """Nothing is done here, whoever asks for it."""

    @override
    async def prepare(self) -> None:
        """End the request; who asks does not matter."""
        raise HTTPError(404, reason=mark("There is no such page here"))

    @override
    def write_error(self, status_code: int, **kwargs: Any) -> None:
        accepted = self.request.headers.get("Accept", "")
        path = self.request.path.removeprefix(self.context.prefix)
        if "text/html" in accepted and not path.startswith(("api/", "internal/")):
            super().write_error(status_code, **kwargs)
        else:
            FleetHandler.write_error(self, status_code, **kwargs)
