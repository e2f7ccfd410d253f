"""The WebSocket that agents dial: authenticated before it opens, bounded after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final

import structlog
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler
from typing_extensions import override

from fleet_contracts.protocol import (
    AddressOffer,
    AddressVerdict,
    Goodbye,
    ToAgent,
    encode,
)
from fleet_hub.adapters.link_registry import LinkRegistry
from fleet_hub.controller import governing, reaching
from fleet_hub.controller.core import Core
from fleet_hub.controller.enrolling import machine_of
from fleet_hub.controller.errors import LinkRefusedError, StoreWriteError
from fleet_hub.controller.link_session import LinkSession


log = structlog.get_logger()

HELLO_SECONDS: Final = 10.0
"""How long a new link may say nothing."""
PROBE_SECONDS: Final = 3.0
"""How long a link may take to answer whether it still lives."""
_BEARER: Final = "Bearer "


def bearer(header: str | None) -> str | None:
    """Return the token of an ``Authorization: Bearer`` header, if it is one."""
    if header is None or not header.startswith(_BEARER):
        return None
    return header[len(_BEARER) :].strip() or None


class AgentSocket(WebSocketHandler):
    """One link, as tornado sees it; ``LinkSession`` knows what it means."""

    _session: LinkSession | None = None
    _silence: asyncio.TimerHandle | None = None
    _trying: asyncio.Task[None] | None = None
    _is_asked: bool = False
    """A second agent came, and this link was asked whether it still lives."""

    @override
    def initialize(self, *, core: Core, registry: LinkRegistry) -> None:
        self._core = core
        self._registry = registry
        self._writing: set[asyncio.Future[None]] = set()

    @override
    def prepare(self) -> None:
        """Answer 401 to whoever holds no machine's token."""
        token = bearer(self.request.headers.get("Authorization"))
        machine = machine_of(self._core, token) if token else None
        if machine is None:
            self.set_header("WWW-Authenticate", "Bearer")
            raise HTTPError(401, "a machine token is needed")
        self._session = LinkSession(
            self._core,
            machine,
            attach=lambda: self._registry.attach(machine, self),
            send=self._say,
            offered=self._offered,
        )

    @override
    def open(self, *args: str, **kwargs: str) -> None:
        # A launch right after an acknowledgement must not wait for the agent's kernel.
        self.set_nodelay(value=True)
        self._expect_a_word(HELLO_SECONDS)

    @override
    def on_message(self, message: str | bytes) -> None:
        session = self._session
        if session is None:
            return
        self._expect_a_word(self._core.settings.silence_seconds)
        try:
            session.receive(message)
        except LinkRefusedError as refusal:
            log.warning(
                "link refused",
                machine=session.machine,
                code=refusal.code,
                fault=str(refusal),
            )
            self.dismiss(
                Goodbye(code=refusal.code, message=str(refusal), retry=refusal.retry)
            )
        except StoreWriteError as error:
            # Nothing was acknowledged, so the agent tells it again on its next link.
            log.error(  # noqa: TRY400 - the message says all; no traceback helps
                "report not stored", machine=session.machine, fault=str(error)
            )
            self.close(1011, "the store cannot be written")

    @override
    def on_pong(self, data: bytes) -> None:
        if self._is_asked and self._session is not None:
            self._is_asked = False
            governing.report_second_link(self._core, self._session.machine)
        self._expect_a_word(self._core.settings.silence_seconds)

    @override
    def on_close(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
        session = self._session
        if session is not None and self._registry.detach(session.machine, self):
            session.closed()

    def dismiss(self, goodbye: Goodbye) -> None:
        """Say why the link ends, and end it."""
        self._say(goodbye)
        self.on_close()
        # Whatever is still on its way is not listened to.
        self._session = None
        self.close(1008, goodbye.code)

    def probe(self) -> None:
        """Ask for a sign of life, and close the connection if none comes."""
        try:
            self.ping()
        except WebSocketClosedError:
            return
        self._is_asked = True
        self._expect_a_word(PROBE_SECONDS)

    def _offered(self, offer: AddressOffer) -> None:
        """Have an address tried; one try at a time, the others go unheard."""
        session = self._session
        if session is None or (self._trying is not None and not self._trying.done()):
            return
        self._trying = asyncio.create_task(self._try(session.machine, offer))

    async def _try(self, machine: str, offer: AddressOffer) -> None:
        try:
            fault = await reaching.try_offer(self._core, machine, offer)
        except StoreWriteError:
            # Nothing was decided: the agent offers it again on its next link.
            return
        self._say(AddressVerdict(address=offer.address, explanation=fault))

    def send(self, text: str) -> None:
        """Queue *text*; a closing connection drops it."""
        self._write(text)

    def _say(self, message: ToAgent) -> None:
        self._write(encode(message))

    def _write(self, text: str) -> None:
        try:
            written: Awaitable[Any] = self.write_message(text)
        except WebSocketClosedError:
            return
        writing = asyncio.ensure_future(_quietly(written))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)

    def _expect_a_word(self, seconds: float) -> None:
        if self._silence is not None:
            self._silence.cancel()
        loop = asyncio.get_running_loop()
        self._silence = loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        """Drop a link that says nothing, without waiting for its goodbye."""
        self.on_close()
        self.close(1008, "silent")


async def _quietly(written: Awaitable[Any]) -> None:
    with suppress(WebSocketClosedError):
        await written
