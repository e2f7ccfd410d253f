"""The timeline document over HTTP: long polls and tags."""

from __future__ import annotations

from typing import Any

from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.timeline import Timeline
from fleet_hub.controller.records import Workload
from fleet_hub.controller.timelines import etag_of, timeline_of
from fleet_hub.service.base import FleetHandler, TokenHandler
from fleet_hub.service.waiting import wait_until


class TimelineAnswers(FleetHandler):
    """Answers with a timeline: at once if the client's copy is old, else on a change.

    A client knows what it has by ``after`` (the last event's number) or, more
    precisely, by the tag of the last answer: the line moves without new events.
    """

    @override
    def compute_etag(self) -> str | None:
        """Return the tag that was set, never one of the bytes: they hold the time."""
        return None

    async def answer_timeline(self, workload: str | None) -> None:
        """Finish with the timeline of *workload*.

        Raises:
            HTTPError: 404; it is not known.
        """
        after, known = int(self.number("after", 0)), self._known_tags()
        begun: list[Timeline] = []

        def is_news(record: Workload | None) -> bool:
            if record is None:
                return True
            now = timeline_of(self.core, record)
            begun.append(now)
            if record.last_seq > after:
                return not known or etag_of(now) not in known
            if known:
                return etag_of(now) not in known
            return etag_of(now) != etag_of(begun[0])

        record = None
        if workload is not None:
            record = await wait_until(
                self.core, workload, is_news, wait_seconds=self.wait_seconds()
            )
        if record is None:
            raise HTTPError(404, reason="This workload is not known any more")
        self._finish(timeline_of(self.core, record), known)

    def _known_tags(self) -> set[str]:
        header = self.request.headers.get("If-None-Match", "")
        return {tag.strip().removeprefix("W/") for tag in header.split(",") if tag}

    def _finish(self, timeline: Timeline, known: set[str]) -> None:
        tag = etag_of(timeline)
        self.set_header("Etag", tag)
        if tag in known:
            self.set_status(304)
            self.finish()
            return
        self.answer(timeline)


class TokenTimelineHandler(TimelineAnswers, TokenHandler):
    """The timeline of the one workload that the token is for."""

    @override
    async def get(self, *args: Any) -> None:
        """Answer at once, or once there is something new."""
        await self.answer_timeline(self.workload)
