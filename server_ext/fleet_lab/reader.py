"""Reads this server's own timeline from the controller, and keeps what it read.

The token names the workload, so nothing that a visitor sends can ask for another one.
All panels of a server share one long poll: a browser with many tabs costs the
controller one connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from tornado.httpclient import AsyncHTTPClient, HTTPError, HTTPRequest, HTTPResponse

from fleet_lab.answers import Answer, Cause, Standing
from fleet_lab.document import NotUnderstoodError, last_seq, merge, read_timeline


MAX_ANSWER_BYTES = 1024 * 1024
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0
"""How long the controller may take beyond the wait that it was asked for."""
RETRY_SECONDS = 1.0
"""The pause of a waiting panel's reader before it asks again in vain."""

NOT_MODIFIED = 304

Fetch = Callable[[HTTPRequest], Awaitable[HTTPResponse]]


def controller_fetch() -> Fetch:
    """Return a way to reach the controller that shares nothing with other clients.

    The default client is one per process with ten slots: long polls would starve it.
    """
    client = AsyncHTTPClient(force_instance=True, max_body_size=MAX_ANSWER_BYTES)
    return client.fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where this server's timeline is, and what opens it."""

    service_url: str
    token: str = field(repr=False)
    user: str
    server: str


@dataclass(slots=True, kw_only=True)
class TimelineReader:
    """Answers what the controller last said about this server, and how old that is."""

    address: Address
    longest_wait_seconds: float
    fetch: Fetch = field(default_factory=controller_fetch)
    now: Callable[[], float] = time.monotonic
    _standing: Standing = Standing.AWAY
    _cause: Cause | None = Cause.UNREACHABLE
    _timeline: dict[str, Any] | None = None
    _tag: str | None = None
    """The controller's own tag of the known timeline."""
    _heard: float | None = None
    _asked: int = 0
    _heard_of: int = 0
    """Which request the known timeline answers."""
    _shared: dict[bool, asyncio.Task[None]] = field(default_factory=dict)

    async def answer(
        self, *, after: int = 0, wait_seconds: float = 0, known_etag: str | None = None
    ) -> Answer:
        """Return what is known now, or within *wait_seconds* what changed.

        News is an event after number *after*; with *known_etag*, any difference.
        """
        if not self.address.token:
            return Answer(standing=Standing.NO_PERMISSION, cause=Cause.TOKEN_MISSING)
        deadline = self.now() + min(wait_seconds, self.longest_wait_seconds)
        await self._ask(poll=False)
        while (left := deadline - self.now()) > 0:
            answer = self._answer()
            if self._is_news(answer, after, known_etag):
                return answer
            await asyncio.wait({self._task(poll=True)}, timeout=left)
        return self._answer()

    async def close(self) -> None:
        """End what is still being asked."""
        tasks = [task for task in self._shared.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _answer(self) -> Answer:
        timeline = self._timeline
        return Answer(
            standing=self._standing,
            cause=self._cause,
            heard_at=None if timeline is None else timeline["as_of"],
            heard_seconds_ago=(
                None if self._heard is None else round(self.now() - self._heard, 1)
            ),
            timeline=timeline,
        )

    def _is_news(self, answer: Answer, after: int, known_etag: str | None) -> bool:
        if known_etag is not None:
            return answer.etag() != known_etag
        return last_seq(self._timeline) > after or self._cause is not None

    async def _ask(self, *, poll: bool) -> None:
        await asyncio.shield(self._task(poll=poll))

    def _task(self, *, poll: bool) -> asyncio.Task[None]:
        """Return the one request of its kind that is under way, or a new one."""
        task = self._shared.get(poll)
        if task is None or task.done():
            task = asyncio.ensure_future(self._poll() if poll else self._refresh(0))
            self._shared[poll] = task
        return task

    async def _poll(self) -> None:
        """Ask for news once, at a bounded pace even if the answer comes at once."""
        if self._cause is not None:
            await asyncio.sleep(RETRY_SECONDS)
            await self._refresh(0)
            return
        began, known = self.now(), self._answer().etag()
        await self._refresh(self.longest_wait_seconds)
        if self._answer().etag() == known:
            await asyncio.sleep(max(0, began + RETRY_SECONDS - self.now()))

    async def _refresh(self, wait_seconds: float) -> None:
        """Ask once; whatever comes of it becomes the standing, never an exception."""
        self._asked += 1
        asked = self._asked
        try:
            response = await self.fetch(self._request(wait_seconds))
            self._learn(asked, response)
        except HTTPError as error:
            self._other_than_ok(error.code)
        except NotUnderstoodError:
            self._standing, self._cause = Standing.AWAY, Cause.NOT_UNDERSTOOD
        except (OSError, TimeoutError, ValueError):
            self._standing, self._cause = Standing.AWAY, Cause.UNREACHABLE

    def _request(self, wait_seconds: float) -> HTTPRequest:
        query: dict[str, str] = {"after": str(last_seq(self._timeline))}
        if wait_seconds:
            query["wait"] = f"{wait_seconds:g}"
        headers = {"Authorization": f"Fleet {self.address.token}"}
        if self._tag is not None:
            headers["If-None-Match"] = self._tag
        return HTTPRequest(
            f"{self.address.service_url}api/timeline?{urlencode(query)}",
            headers=headers,
            # A redirect would carry the token to wherever it leads.
            follow_redirects=False,
            connect_timeout=CONNECT_SECONDS,
            request_timeout=wait_seconds + ANSWER_SECONDS,
        )

    def _learn(self, asked: int, response: HTTPResponse) -> None:
        newer = read_timeline(response.body)
        if (newer["user"], newer["server"]) != (self.address.user, self.address.server):
            self._standing, self._cause = Standing.NO_PERMISSION, Cause.OTHER_SERVER
            self._timeline = self._tag = None
            return
        if self._is_overtaken(asked, newer):
            return
        self._timeline = merge(self._timeline, newer)
        self._tag, self._heard_of = response.headers.get("Etag"), asked
        self._heard_from(self._timeline)

    def _heard_from(self, timeline: Mapping[str, Any]) -> None:
        self._heard = self.now()
        self._standing = Standing.EXPIRED if timeline["truncated"] else Standing.LIVE
        self._cause = None

    def _is_overtaken(self, asked: int, newer: Mapping[str, Any]) -> bool:
        """Whether a request that was sent later has already brought later news."""
        known = self._timeline
        return (
            known is not None
            and asked < self._heard_of
            and datetime.fromisoformat(newer["as_of"])
            < datetime.fromisoformat(known["as_of"])
        )

    def _other_than_ok(self, code: int) -> None:
        if code == NOT_MODIFIED and self._timeline is not None:
            self._heard_from(self._timeline)
        elif code in {401, 403}:
            self._standing, self._cause = Standing.NO_PERMISSION, Cause.TOKEN_REVOKED
        elif code in {404, 410}:
            self._standing, self._cause = Standing.EXPIRED, Cause.FORGOTTEN
        else:
            self._standing, self._cause = Standing.AWAY, Cause.UNREACHABLE
