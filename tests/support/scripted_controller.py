"""A controller that answers what a test tells it to, over the real wire.

For what the real one cannot be made to do on cue: to be away, to answer late, to
break off in the middle of a start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, HTTPError, RequestHandler
from tornado.websocket import WebSocketHandler

from fleet_contracts.allocations import HOLDING, PHASE, State
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Timeline, TimelineEvent, TimelineKind
from fleet_contracts.workloads import Choice, ServerKey
from fleet_hub.admission import (
    Ask,
    Offer,
    Offers,
    OpenedRequest,
    Outcome,
    OutcomeKind,
    ServerStatus,
    StopRequest,
    Update,
    ValidateAnswer,
    ValidateRequest,
)


SECRET = "the-spawner-secret"
KIND = {
    State.REQUESTED: TimelineKind.ASKED,
    State.QUEUED: TimelineKind.WAITING,
    State.PLACED: TimelineKind.PLACED,
    State.PREPARING: TimelineKind.PREPARING,
    State.STARTING: TimelineKind.STARTING,
    State.READY: TimelineKind.READY,
    State.UNKNOWN: TimelineKind.SILENT,
    State.STOPPING: TimelineKind.STOPPING,
    State.STOPPED: TimelineKind.STOPPED,
    State.FAILED: TimelineKind.FAILED,
    State.REFUSED: TimelineKind.REFUSED,
}


def an_offer(**changes: Any) -> Offer:
    """Return an offer that can start now."""
    values: dict[str, Any] = {
        "profile": "cpu",
        "class_name": "small",
        "title": "Python",
        "class_title": "Small",
        "accelerator": "cpu",
        "cpu_milli": 2000,
        "memory_bytes": 4 * 1024**3,
        "startable": True,
        "choosable": True,
        "headline": "It starts at once.",
    }
    return Offer.model_validate(values | changes)


@dataclass(kw_only=True)
class Known:
    """One server as the controller knows it."""

    key: ServerKey
    workload: str = "w1"
    generation: int = 1
    state: State = State.REQUESTED
    url: str | None = None
    headline: str = ""
    parked: bool = False
    unopened_since: datetime | None = None
    events: list[TimelineEvent] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def status(self) -> ServerStatus:
        """Return the answer of ``internal/servers/<key>``."""
        return ServerStatus(
            key=self.key,
            workload=self.workload,
            generation=self.generation,
            state=self.state,
            parked=self.parked,
            holds=self.state in HOLDING,
            # a place that is held for a start which is yet to come
            unclaimed=self.state is State.PLACED,
            unopened_since=self.unopened_since,
            url=self.url,
            headline=self.headline,
            view_token="view-token",
        )

    def timeline(self, after: int) -> Timeline:
        """Return the timeline's document."""
        return Timeline(
            schema="jupyterhub-fleet/timeline/v1",
            as_of=datetime.now(UTC),
            workload=self.workload,
            generation=self.generation,
            user="ada",
            server="",
            state=self.state,
            phase=PHASE[self.state],
            headline=self.headline,
            events=tuple(event for event in self.events if event.seq > after),
        )


class Link(WebSocketHandler):
    """One attended start, as the test drives it."""

    def initialize(self, controller: ScriptedController) -> None:
        """Belong to *controller*."""
        self.controller = controller
        self.ask: Ask
        self.parked = asyncio.Event()
        self.gone = asyncio.Event()

    def open(self, *args: str, **kwargs: str) -> None:
        """Check the secret as the real one does before anything is said."""
        self.controller._open_links.append(self)
        if self.request.headers.get("Authorization") != f"Bearer {SECRET}":
            self.close(4401)

    async def on_message(self, message: str | bytes) -> None:
        """Hand an ask to the test, or note the park."""
        text = message.decode() if isinstance(message, bytes) else message
        if '"park"' in text:
            self.parked.set()
            return
        self.ask = Ask.model_validate_json(text)
        await self.controller.links.put(self)

    def on_close(self) -> None:
        """Note that the Hub let go."""
        self.gone.set()

    async def tell(
        self, state: State, headline: str = "", *, machine: str | None = None
    ) -> None:
        """Record a new state and send its entry."""
        event = await self.controller.enter(
            self.ask.key, state, headline, machine=machine
        )
        await self.write_message(
            Update(event=event, headline=headline).model_dump_json(by_alias=True)
        )

    async def end(
        self,
        kind: OutcomeKind,
        headline: str = "",
        *,
        url: str | None = None,
        reason: Reason | None = None,
    ) -> None:
        """Send the outcome and close."""
        explanation = Explanation(reason=reason) if reason else None
        outcome = Outcome(
            kind=kind,
            workload="w1",
            url=url,
            headline=headline,
            explanation=explanation,
        )
        await self.write_message(outcome.model_dump_json(by_alias=True))
        self.close()


class ScriptedController:
    """What the test changes, and what it may wait for."""

    def __init__(self) -> None:
        """Accept every choice, offer one profile, know no server."""
        self.offers: tuple[Offer, ...] = (an_offer(),)
        self.validate: Any = accept
        self.servers: dict[str, Known] = {}
        self.links: asyncio.Queue[Link] = asyncio.Queue()
        self.stops: asyncio.Queue[tuple[str, StopRequest]] = asyncio.Queue()
        self.opened: asyncio.Queue[bool] = asyncio.Queue()
        """What the Hub said about a server that waits to be opened."""
        self.retired: asyncio.Queue[str] = asyncio.Queue()
        self.timelines: asyncio.Queue[int] = asyncio.Queue()
        """What each reader of a timeline has seen already."""
        self.validated: list[ValidateRequest] = []
        self.away = 0
        """So many questions about a server's status are left without an answer."""
        self.port = 0
        self._open_links: list[Link] = []
        self._server: HTTPServer | None = None

    @property
    def url(self) -> str:
        """The origin, for ``FleetSpawner.controller_url``."""
        return f"http://127.0.0.1:{self.port}"

    async def enter(
        self,
        key: ServerKey,
        state: State,
        headline: str = "",
        *,
        machine: str | None = None,
        url: str | None = None,
    ) -> TimelineEvent:
        """Put a server into *state*, and wake whoever waits for that."""
        known = self.servers.setdefault(str(key), Known(key=key))
        event = TimelineEvent(
            seq=len(known.events) + 1,
            generation=known.generation,
            at=datetime.now(UTC),
            kind=KIND[state],
            state=state,
            machine=machine,
        )
        async with known.changed:
            known.events.append(event)
            known.state, known.headline = state, headline
            known.url = url or known.url
            known.changed.notify_all()
        return event

    async def start(self) -> None:
        """Listen, on the port of the last time if there was one."""
        if self.port:
            self._server = HTTPServer(self._application())
            self._server.listen(self.port, "127.0.0.1")
            return
        socket, self.port = bind_unused_port()
        self._server = HTTPServer(self._application())
        self._server.add_sockets([socket])

    async def stop(self) -> None:
        """Be away: close the port and every connection."""
        if self._server is not None:
            self._server.stop()
            await self._server.close_all_connections()
            self._server = None
        for link in self._open_links:
            if link.ws_connection is not None:
                link.ws_connection._abort()
        self._open_links.clear()

    def _application(self) -> Application:
        scripted = {"controller": self}
        base = r"/.*services/fleet/internal"
        return Application(
            [
                (rf"{base}/attend", Link, scripted),
                (rf"{base}/offers", _Offers, scripted),
                (rf"{base}/validate", _Validate, scripted),
                (rf"{base}/servers/([0-9]+-[0-9]+)", _Server, scripted),
                (rf"{base}/servers/([0-9]+-[0-9]+)/stop", _Stop, scripted),
                (rf"{base}/servers/([0-9]+-[0-9]+)/opened", _Opened, scripted),
                (rf"{base}/servers/([0-9]+-[0-9]+)/timeline", _Timeline, scripted),
            ]
        )


def accept(request: ValidateRequest) -> ValidateAnswer:
    """Accept what is asked for."""
    return ValidateAnswer(choice=Choice.model_validate(dict(request.options)))


def refuse(reason: Reason, sentence: str) -> Any:
    """Return a validation that refuses everything."""

    def answer(request: ValidateRequest) -> ValidateAnswer:
        return ValidateAnswer(explanation=Explanation(reason=reason), headline=sentence)

    return answer


class _Handler(RequestHandler):
    def initialize(self, controller: ScriptedController) -> None:
        self.controller = controller

    def prepare(self) -> None:
        if self.request.headers.get("Authorization") != f"Bearer {SECRET}":
            raise HTTPError(401)

    def known(self, key: str) -> Known:
        user_id, server_id = key.split("-")
        return self.controller.servers.get(key) or Known(
            key=ServerKey(user_id=int(user_id), server_id=int(server_id)),
            workload=None,  # type: ignore[arg-type]
            generation=0,
            state=State.STOPPED,
        )


class _Offers(_Handler):
    def post(self) -> None:
        answer = Offers(as_of=datetime.now(UTC), offers=self.controller.offers)
        self.write(answer.model_dump_json(by_alias=True))


class _Validate(_Handler):
    def post(self) -> None:
        request = ValidateRequest.model_validate_json(self.request.body)
        self.controller.validated.append(request)
        self.write(self.controller.validate(request).model_dump_json(by_alias=True))


class _Server(_Handler):
    async def get(self, key: str) -> None:
        if self.controller.away:
            self.controller.away -= 1
            raise HTTPError(503)
        known = self.known(key)
        wait = float(self.get_query_argument("wait", "0"))
        settled = {State.READY, State.STOPPED, State.FAILED, State.REFUSED}
        try:
            async with asyncio.timeout(wait), known.changed:
                await known.changed.wait_for(lambda: known.state in settled)
        except TimeoutError:
            pass
        self.write(known.status().model_dump_json(by_alias=True))

    async def delete(self, key: str) -> None:
        self.controller.servers.pop(key, None)
        await self.controller.retired.put(key)


class _Stop(_Handler):
    async def post(self, key: str) -> None:
        request = StopRequest.model_validate_json(self.request.body)
        known = self.known(key)
        await self.controller.enter(known.key, State.STOPPED, "Stopped.")
        await self.controller.stops.put((key, request))
        self.write(self.known(key).status().model_dump_json(by_alias=True))


class _Opened(_Handler):
    async def post(self, key: str) -> None:
        request = OpenedRequest.model_validate_json(self.request.body)
        await self.controller.opened.put(request.opened)
        self.write(self.known(key).status().model_dump_json(by_alias=True))


class _Timeline(_Handler):
    async def get(self, key: str) -> None:
        known = self.known(key)
        after = int(self.get_query_argument("after", "0"))
        await self.controller.timelines.put(after)
        wait = float(self.get_query_argument("wait", "0"))
        try:
            async with asyncio.timeout(wait), known.changed:
                await known.changed.wait_for(
                    lambda: any(event.seq > after for event in known.events)
                )
        except TimeoutError:
            pass
        if known.generation == 0:
            raise HTTPError(404)
        self.write(known.timeline(after).model_dump_json(by_alias=True))


@asynccontextmanager
async def scripted_controller() -> AsyncIterator[ScriptedController]:
    """Run a scripted controller."""
    controller = ScriptedController()
    await controller.start()
    try:
        yield controller
    finally:
        await controller.stop()
