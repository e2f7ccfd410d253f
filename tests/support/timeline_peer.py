"""A controller that tells one timeline, in a thread, for tests with a real browser."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any, Self

from patience import PATIENCE, free_port
from tornado.httpserver import HTTPServer
from tornado.iostream import StreamClosedError
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler


class TimelinePeer:
    """Speaks ``api/timeline`` as the controller does; a test sets what it tells."""

    def __init__(self, document: dict[str, Any], *, token: str) -> None:
        """Tell *document* to whoever shows *token*."""
        self._document = document
        self._token = token
        self._port = free_port()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: HTTPServer | None = None
        self._changed = asyncio.Event()
        self._changes = 0

    @property
    def url(self) -> str:
        """The service's address."""
        return f"http://127.0.0.1:{self._port}/services/fleet/"

    def __enter__(self) -> Self:
        """Listen on a free port."""
        self._thread.start()
        self.come_back()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop listening, and end the thread."""
        self.go_away()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def say(self, document: dict[str, Any]) -> None:
        """Tell another document; who waits for news hears it at once."""

        async def change() -> None:
            self._document = document
            self._wake()

        self._run(change)

    def revoke(self) -> None:
        """Accept no token any more."""
        self.accept("")

    def accept(self, token: str) -> None:
        """Accept this token and no other."""

        async def change() -> None:
            self._token = token
            self._wake()

        self._run(change)

    def go_away(self) -> None:
        """Answer no more, as a controller that was killed."""

        async def close() -> None:
            if self._server is None:
                return
            self._server.stop()
            self._wake()
            await self._server.close_all_connections()
            self._server = None

        self._run(close)

    def come_back(self) -> None:
        """Listen, at the address of the last time."""

        async def open_() -> None:
            sockets = bind_sockets(self._port, "127.0.0.1")
            handlers = [(r"/services/fleet/api/timeline", _Timeline, {"peer": self})]
            self._server = HTTPServer(Application(handlers))
            self._server.add_sockets(sockets)

        self._run(open_)

    # ------------------------------------------------------------ for the handler

    def accepts(self, authorization: str | None) -> bool:
        """Whether this header opens the timeline."""
        return bool(self._token) and authorization == f"Fleet {self._token}"

    def told(self) -> dict[str, Any]:
        """Return the whole document as of now."""
        return {**self._document, "as_of": datetime.now(UTC).isoformat()}

    @property
    def tag(self) -> str:
        """What tells this document from the one before: news that nobody awaits is news."""
        return f'"{self._changes}"'

    async def change(self, seconds: float) -> None:
        """Return when something has changed, or after *seconds*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def _wake(self) -> None:
        self._changes += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def _run(self, work: Callable[[], Any]) -> None:
        asyncio.run_coroutine_threadsafe(work(), self._loop).result(PATIENCE)


class _Timeline(RequestHandler):
    def initialize(self, peer: TimelinePeer) -> None:
        self._peer = peer

    async def get(self) -> None:
        wait = float(self.get_query_argument("wait", "0"))
        authorization = self.request.headers.get("Authorization")
        known = self.request.headers.get("If-None-Match")
        if wait and known == self._peer.tag and self._peer.accepts(authorization):
            await self._peer.change(wait)
        if not self._peer.accepts(authorization):
            self.set_status(401)
            return
        self.set_header("Etag", self._peer.tag)
        if known == self._peer.tag:
            self.set_status(304)
            return
        with suppress(StreamClosedError):
            await self.finish(json.dumps(self._peer.told()))


class Story:
    """Tells timelines that lie some seconds back from now, each of its own workload."""

    def __init__(self, *, began_seconds_ago: float, **facts: Any) -> None:
        """Begin *began_seconds_ago*; *facts* stand in every document."""
        self._began = datetime.now(UTC) - timedelta(seconds=began_seconds_ago)
        self._workload = token_hex(8)
        self._facts = facts
        self._events: list[dict[str, Any]] = []

    def then(self, seconds: float, state: str, kind: str = "", **more: Any) -> Self:
        """Let it reach *state* some *seconds* after its beginning."""
        event = {
            "seq": len(self._events) + 1,
            "generation": 1,
            "at": self.time(seconds),
            "kind": kind or state,
            "state": state,
            **more,
        }
        self._events.append(event)
        return self

    def time(self, seconds: float) -> str:
        """Return the wire's text of that moment."""
        return (self._began + timedelta(seconds=seconds)).isoformat()

    def document(self, **facts: Any) -> dict[str, Any]:
        """Return the timeline as it stands."""
        return {
            "schema": "jupyterhub-fleet/timeline/v1",
            "workload": self._workload,
            "generation": 1,
            "user": "ada",
            "server": "gpu",
            "profile": "gpu-large",
            "profile_title": "GPU large",
            "class": "gpu-large",
            "machine": "gpu-17",
            "state": self._events[-1]["state"] if self._events else "requested",
            "phase": "ready",
            "headline": "Ready.",
            "events": list(self._events),
            **self._facts,
            **facts,
        }


def an_admission(began_seconds_ago: float = 4_000) -> Story:
    """A start that waited two minutes and forty seconds, and took 32 more."""
    busy = {
        "reason": "gpu_busy",
        "requested": 1,
        "capacity": 8,
        "free": 0,
        "unit": "devices",
        "holders": [
            {
                "workload": "w0",
                "owner": "grace",
                "title": "GPU large",
                "ends_by": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
            }
        ],
    }
    packages = {"step": "install_packages", "done": 97, "total": 97}
    return (
        Story(began_seconds_ago=began_seconds_ago)
        .then(0, "requested", "asked")
        .then(0, "queued", "waiting", explanation=busy)
        .then(160, "placed", machine="gpu-17")
        .then(164, "preparing")
        .then(170, "preparing", "progress", progress=packages)
        .then(180, "starting")
        .then(192, "ready")
    )
