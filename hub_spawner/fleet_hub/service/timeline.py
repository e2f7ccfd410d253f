"""The timeline document over HTTP: long polls and tags."""

from __future__ import annotations

from typing import Any

from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.language import mark
from fleet_contracts.timeline import Timeline
from fleet_hub.controller.records import Workload
from fleet_hub.controller.timelines import etag_of, timeline_of
from fleet_hub.service.base import FleetHandler, TokenHandler
from fleet_hub.service.waiting import wait_until


class TimelineAnswers(FleetHandler):
    """Answers with a timeline: at once if the client's copy is old, else on a change.

    A client says what it has by ``after`` (the last event's number), and is sent the
    later events alone; the tag of its last answer tells more precisely whether there is
    news, because the line moves without new events.
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
        begun: list[tuple[Timeline, str]] = []

        def is_news(record: Workload | None) -> bool:
            if record is None:
                return True
            now = timeline_of(self.core, record)
            begun.append((now, tag := etag_of(now)))
            if record.last_seq > after:
                return not known or tag not in known
            return tag not in known if known else tag != begun[0][1]

        record = None
        if workload is not None:
            record = await wait_until(
                self.core, workload, is_news, wait_seconds=self.wait_seconds()
            )
        if record is None:
            raise HTTPError(404, reason=mark("This workload is not known any more"))
        # What was looked at last is what there is: nothing ran in between.
        timeline, tag = begun[-1]
        self._finish(timeline, tag, known=known, after=after)

    def _known_tags(self) -> set[str]:
        header = self.request.headers.get("If-None-Match", "")
        return {tag.strip().removeprefix("W/") for tag in header.split(",") if tag}

    def _finish(
        self, timeline: Timeline, tag: str, *, known: set[str], after: int
    ) -> None:
        self.set_header("Etag", tag)
        if tag in known:
            self.set_status(304)
            self.finish()
            return
        # A long timeline is not sent anew with each of its entries.
        events = tuple(event for event in timeline.events if event.seq > after)
        self.answer(timeline.model_copy(update={"events": events}))


class TokenTimelineHandler(TimelineAnswers, TokenHandler):
    """The timeline of the one workload that the token is for."""

    @override
    async def get(self, *args: Any) -> None:
        """Answer at once, or once there is something new."""
        await self.answer_timeline(self.workload)
