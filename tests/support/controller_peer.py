"""A small controller that speaks the agent link, for tests of real agents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from patience import PATIENCE, free_port
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from fleet_contracts.base import Message
from fleet_contracts.protocol import (
    PROTOCOL,
    Acknowledge,
    AgentEvent,
    Forget,
    Goodbye,
    Hello,
    Inventory,
    InventoryItem,
    Launch,
    Report,
    Stop,
    Welcome,
    decode_from_agent,
    encode,
)
from fleet_contracts.workloads import WorkloadSpec


class ControllerPeer:
    """Welcomes agents, remembers all that they say, and says what a test wants."""

    def __init__(self, *, token: str = "t0k3n") -> None:
        """Accept agents that know *token*."""
        self.token = token
        self.acknowledges = True
        self.may_welcome = asyncio.Event()
        """Set, unless a test wants an agent to wait for its welcome."""
        self.may_welcome.set()
        self.goodbye: Goodbye | None = None
        self.welcome = Welcome(
            protocol=PROTOCOL, machine="testbox", heartbeat_seconds=0.2
        )
        self.hellos: list[Hello] = []
        self.heard: list[Any] = []
        self.inventories: list[list[InventoryItem]] = []
        self.refusals = 0
        # Below those of outgoing connections: it is still free after a ``close``.
        self.port = free_port()
        self._links: list[_Link] = []
        self._changed = asyncio.Condition()
        self._server: HTTPServer | None = None

    @property
    def url(self) -> str:
        """The service's address, as a person would give it to an agent."""
        return f"http://127.0.0.1:{self.port}/services/fleet/"

    def open(self) -> None:
        """Listen; on the same port again after ``close``."""
        sockets = bind_sockets(self.port, "127.0.0.1")
        app = Application([(r"/services/fleet/agent", _Link, {"peer": self})])
        self._server = HTTPServer(app)
        self._server.add_sockets(sockets)

    async def close(self) -> None:
        """Stop listening and drop all links, as a killed controller would."""
        if self._server is not None:
            self._server.stop()
            await self._server.close_all_connections()
            self._server = None
        for link in list(self._links):
            link.drop()
        self._links.clear()

    def say(self, message: Message) -> None:
        """Send *message* on the living link."""
        self._links[-1].say(message)

    def say_raw(self, text: str) -> None:
        """Send *text* as it is."""
        self._links[-1].say_raw(text)

    def launch(self, allocation: str, epoch: int, spec: WorkloadSpec) -> None:
        """Ask for an allocation."""
        self.say(Launch(allocation=allocation, epoch=epoch, spec=spec))

    def stop(self, allocation: str, epoch: int, **details: Any) -> None:
        """Ask for the end of an allocation."""
        self.say(Stop(allocation=allocation, epoch=epoch, **details))

    def forget(self, allocation: str, epoch: int) -> None:
        """Tell that the end is recorded."""
        self.say(Forget(allocation=allocation, epoch=epoch))

    def reports(self, allocation: str | None = None) -> list[Report]:
        """Return the reports that were heard, repeated ones once, in order."""
        found: dict[tuple[str, int, int], Report] = {}
        for message in self.heard:
            if isinstance(message, Report) and allocation in {None, message.allocation}:
                found.setdefault(
                    (message.allocation, message.epoch, message.seq), message
                )
        return list(found.values())

    async def until(self, what: Callable[[], Any]) -> Any:
        """Return the first true result of *what*, asked after each message."""
        async with asyncio.timeout(PATIENCE), self._changed:
            while not (result := what()):
                await self._changed.wait()
            return result

    async def report(self, allocation: str, event: AgentEvent, **facts: Any) -> Report:
        """Return the first report of *event*; *facts* must be as given."""

        def find() -> Report | None:
            wanted = {"allocation": allocation, "event": event, **facts}
            for message in self.heard:
                if isinstance(message, Report) and all(
                    getattr(message, name) == fact for name, fact in wanted.items()
                ):
                    return message
            return None

        found: Report = await self.until(find)
        return found

    async def step(self, allocation: str, step: str) -> Report:
        """Return the report of progress in *step*."""

        def find() -> Report | None:
            for report in self.reports(allocation):
                if report.progress is not None and report.progress.step == step:
                    return report
            return None

        found: Report = await self.until(find)
        return found

    async def greeted(self, count: int) -> Hello:
        """Return the *count*-th hello, once its whole inventory has been shown."""
        await self.until(lambda: len(self.inventories) >= count)
        return self.hellos[count - 1]

    # ----------------------------------------------------------- for the handlers

    async def note(self, message: Any) -> None:
        """Remember *message* and wake who waits for it."""
        async with self._changed:
            self.heard.append(message)
            self._changed.notify_all()

    async def refused(self) -> None:
        """Remember that an agent was turned away."""
        async with self._changed:
            self.refusals += 1
            self._changed.notify_all()

    async def take(self, link: _Link, message: Any) -> None:
        """Answer *message* as a controller does."""
        if isinstance(message, Hello):
            self.hellos.append(message)
            self._links.append(link)
            await self.may_welcome.wait()
            link.say(self.goodbye or self.welcome)
        elif isinstance(message, Inventory):
            link.items.extend(message.items)
            if message.last:
                self.inventories.append(link.items)
        elif isinstance(message, Report) and self.acknowledges:
            link.say(
                Acknowledge(
                    allocation=message.allocation,
                    epoch=message.epoch,
                    seq=message.seq,
                )
            )
        await self.note(message)

    def gone(self, link: _Link) -> None:
        """Forget a link that is over."""
        with suppress(ValueError):
            self._links.remove(link)


class _Link(WebSocketHandler):
    def initialize(self, peer: ControllerPeer) -> None:
        self.peer = peer
        self.items: list[InventoryItem] = []

    async def prepare(self) -> None:
        expected = f"Bearer {self.peer.token}"
        if self.request.headers.get("Authorization") != expected:
            await self.peer.refused()
            self.set_status(403)
            await self.finish()

    async def on_message(self, text: str | bytes) -> None:
        await self.peer.take(self, decode_from_agent(text))

    def say(self, message: Message) -> None:
        self.say_raw(encode(message))

    def say_raw(self, text: str) -> None:
        with suppress(WebSocketClosedError):
            self.write_message(text)

    def drop(self) -> None:
        if self.ws_connection is not None:
            self.ws_connection.stream.close()

    def on_close(self) -> None:
        self.peer.gone(self)
