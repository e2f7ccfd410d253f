"""Why, who waits, and the whole state: for users, admins and the command line."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlencode

from pydantic import ValidationError
from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.language import mark, speak_of_another
from fleet_contracts.sentences import holder_words
from fleet_contracts.workloads import Principal
from fleet_hub.controller.exporting import state_of, view_of
from fleet_hub.explaining.answers import (
    UnknownSubjectError,
    inquire,
    line,
    written,
)
from fleet_hub.explaining.document import Answer, Question
from fleet_hub.explaining.prose import GLYPHS, KINDS
from fleet_hub.explaining.state import dump
from fleet_hub.service.base import FleetHandler, SpawnerHandler
from fleet_hub.service.pages import PageHandler
from fleet_hub.service.people import PersonHandler


class Explains(FleetHandler):
    """Answers questions; who may ask what is for the handler that mixes this in."""

    async def explain(self, question: Question) -> None:
        """Finish with the answer.

        What the engine says is found out at once; it is put into words beside the
        event loop, which goes on placing meanwhile.
        """
        self.answer(await self.found(question))

    async def found(self, question: Question) -> Answer:
        """Return the answer.

        Raises:
            HTTPError: 404; the question is about nothing that is there.
        """
        try:
            inquiry = inquire(view_of(self.core), question)
        except UnknownSubjectError as error:
            raise HTTPError(404, reason=str(error)) from error
        return await asyncio.to_thread(written, inquiry)

    def words(self) -> dict[str, Any]:
        """Return what a page says beside its answers."""
        query = parse_qs(self.request.query)

        def page_link(page: int) -> str:
            return "?" + urlencode({**query, "page": page}, doseq=True)

        return {
            "glyphs": GLYPHS,
            "kinds": KINDS,
            "page_link": page_link,
            "holder_words": holder_words,
            "xsrf_form_html": self.xsrf_form_html(),
        }

    def question(self) -> Question:
        """Return what the query asks.

        Raises:
            HTTPError: 400; it asks nothing that could be answered.
        """
        names = ("workload", "profile", "class", "user")
        asked: dict[str, Any] = {
            name: self.get_query_argument(name, None) or None for name in names
        }
        asked["server"] = self.get_query_argument("server", None)
        asked["page"] = self.get_query_argument("page", None) or 1
        asked["groups"] = tuple(self.get_query_arguments("group")) or None
        try:
            return Question.model_validate(asked)
        except ValidationError as error:
            fields = ", ".join(sorted(str(one["loc"][0]) for one in error.errors()))
            raise HTTPError(400, reason=f"not understood: {fields}") from None


class ExplainForOperator(SpawnerHandler, Explains):
    """Any question, from the Hub's own machine."""

    @override
    async def get(self) -> None:
        """Answer."""
        speak_of_another(is_another=True)
        await self.explain(self.question())


class ExplainForPerson(PersonHandler, Explains):
    """What the visitor could start; an admin may ask for others."""

    @override
    async def get(self) -> None:
        """Answer for the visitor, in the groups that the Hub says."""
        question = self.question()
        if question.workload is not None:
            record = self.seen(question.workload)
            is_another = record.principal.name != self.visitor.name
            speak_of_another(is_another=is_another)
        elif question.user in {None, self.visitor.name} and question.groups is None:
            mine = {"user": self.visitor.name, "groups": self.visitor.groups}
            question = question.model_copy(update=mine)
        elif not self.visitor.sees_all:
            raise HTTPError(403, reason=mark("Only admins may ask for others"))
        elif question.user is None:
            question = question.model_copy(update={"user": self.visitor.name})
        else:
            speak_of_another(is_another=question.user != self.visitor.name)
        await self.explain(question)


class ExplainWorkload(PersonHandler, Explains):
    """Why one of the visitor's workloads waits, down to each machine."""

    @override
    async def get(self, workload: str) -> None:
        """Answer."""
        record = self.seen(workload)
        speak_of_another(is_another=record.principal.name != self.visitor.name)
        page = self.question().page
        await self.explain(Question(workload=workload, page=page))


class WhyPage(PageHandler, Explains):
    """The same as a page: every machine, and what would help."""

    @override
    async def get(self, workload: str) -> None:
        """Show it; the page needs no script."""
        record = self.seen(workload)
        speak_of_another(is_another=record.principal.name != self.visitor.name)
        page = self.question().page
        answer = await self.found(Question(workload=workload, page=page))
        may_act = self.visitor.may_act_on(record)
        self.render_page("why.html", answers=[answer], may_act=may_act, **self.words())


class WhyProfilePage(PageHandler, Explains):
    """What would become of a profile if the visitor asked for it now, by class."""

    @override
    async def get(self) -> None:
        """Show every class of the profile; the page needs no script.

        Raises:
            HTTPError: 404; there is no such profile for the visitor.
        """
        question, catalog = self.question(), self.core.catalogs.current()
        name = question.profile
        profile = None if name is None else catalog.profile_named(name)
        known = self.visitor.groups
        principal = Principal(user_id=0, name=self.visitor.name, groups=known)
        if profile is None or not profile.audience.includes(principal):
            raise HTTPError(404, reason=mark("There is no such profile for you"))
        asked: dict[str, Any] = {
            "profile": profile.name,
            "user": self.visitor.name,
            "groups": known,
            "server": question.server,
            "page": question.page,
        }
        answers = [
            await self.found(Question.model_validate({**asked, "class": class_name}))
            for class_name in profile.classes
        ]
        self.render_page("why.html", answers=answers, may_act=False, **self.words())


class QueueForOperator(SpawnerHandler):
    """The line, from the Hub's own machine."""

    @override
    async def get(self) -> None:
        """Answer with everybody who waits."""
        speak_of_another(is_another=True)
        self.answer(line(view_of(self.core)))


class QueueForAdmin(PersonHandler):
    """The line, with everybody's names."""

    @override
    async def get(self) -> None:
        """Answer with everybody who waits."""
        self.require_sight()
        speak_of_another(is_another=True)
        self.answer(line(view_of(self.core)))


class ExportForOperator(SpawnerHandler):
    """The whole state, from the Hub's own machine."""

    @override
    async def get(self) -> None:
        """Answer with everything but refs, tokens and environments."""
        state = state_of(self.core, timelines=True)
        self.answer(await asyncio.to_thread(dump, state))


class ExportForAdmin(PersonHandler):
    """The whole state, for admins."""

    @override
    async def get(self) -> None:
        """Answer with everything but refs, tokens and environments."""
        self.require_sight()
        state = state_of(self.core, timelines=True)
        self.answer(await asyncio.to_thread(dump, state))
