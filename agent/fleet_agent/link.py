"""The one WebSocket to the controller: dialled again for as long as the agent lives.

Losing it changes nothing on the machine.  What must not get lost is in the ledger, so
this module keeps nothing: on every new link it says hello, shows the inventory and
sends all that was not acknowledged.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

import structlog
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import (
    WebSocketClientConnection,
    WebSocketClosedError,
    websocket_connect,
)

from fleet_agent.errors import AgentError, DismissedError
from fleet_agent.link_state import (
    WELCOME_SECONDS,
    Conversation,
    Ending,
    Phase,
    Resend,
    ViolationError,
    next_delay,
    pages,
)
from fleet_contracts.base import Message
from fleet_contracts.capabilities import Usage
from fleet_contracts.protocol import (
    MAX_MESSAGE_BYTES,
    CapabilitiesChanged,
    Goodbye,
    Heartbeat,
    Hello,
    InventoryItem,
    ProtocolError,
    Report,
    ToAgent,
    Welcome,
    encode,
)


_CONNECT_SECONDS = 20.0
_PING_SECONDS = 20.0
_HEARTBEAT_BOUNDS = (0.1, 300.0)
_DENIED = (401, 403)

_log = structlog.stdlib.get_logger("fleet_agent.link")


class Speaker(Protocol):
    """Whom the link speaks for; all methods return at once."""

    def hello(self) -> Hello:
        """Return the introduction for a new link."""

    def usage(self) -> Usage | None:
        """Return how busy the machine was when it was last looked at."""

    def inventory(self) -> Sequence[InventoryItem]:
        """Return what the ledger holds now."""

    def unacknowledged(self) -> Sequence[Report]:
        """Return the reports that the controller has not confirmed, oldest first."""

    def receive(self, message: ToAgent) -> None:
        """Act on a message of a living link; called in the order of arrival."""

    def lost(self) -> None:
        """Know that a link which lived has ended."""


class Link:
    """Keeps one machine connected to its controller."""

    def __init__(
        self,
        *,
        url: str,
        token: Callable[[], str],
        speaker: Speaker,
        ca_file: str | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Dial *url*; *token* is read anew for each attempt, so it can be replaced."""
        self._url = url
        self._token = token
        self._speaker = speaker
        self._ca_file = ca_file
        self._chance = chance
        self._outgoing: asyncio.Queue[str] | None = None

    def send(self, message: Message) -> None:
        """Send *message* if the link lives; what must arrive is in the ledger too."""
        if self._outgoing is None:
            return
        try:
            self._outgoing.put_nowait(encode(message))
        except ProtocolError as error:
            _log.error("a message cannot be sent", error=str(error))

    async def run(self) -> None:
        """Stay connected until cancelled.

        Raises:
            DismissedError: the controller does not want this agent back.
            AgentError: the agent cannot go on, such as with a damaged ledger.
        """
        failures = 0
        while True:
            conversation = Conversation()
            ending = await self._attempt(conversation)
            # A link that got as far as a welcome was no failure: come back quickly.
            failures = 1 if conversation.phase is Phase.LIVE else failures + 1
            if ending is Ending.DISMISSED:
                assert conversation.goodbye is not None  # noqa: S101 - by ending()
                raise _dismissed(conversation.goodbye)
            delay = next_delay(failures, ending, chance=self._chance())
            _log.info("link is down", ending=ending.value, again_in=round(delay, 1))
            await asyncio.sleep(delay)

    async def _attempt(self, conversation: Conversation) -> Ending:
        """Hold one connection from the dial to its end."""
        try:
            connection = await self._dial()
        except HTTPClientError as error:
            if error.code in _DENIED:
                _log.error(
                    "the controller refused this machine's token: enrol it again",
                    status=error.code,
                )
                return Ending.DENIED
            _log.warning("the controller was not reached", error=str(error))
            return Ending.LOST
        except AgentError:
            raise
        except Exception as error:  # noqa: BLE001 - every failure to connect is retried
            _log.warning(
                "the controller was not reached", error=str(error) or repr(error)
            )
            return Ending.LOST
        try:
            await self._converse(connection, conversation)
        finally:
            if self._outgoing is not None:
                self._speaker.lost()
            self._outgoing = None
            connection.close()
        return conversation.ending()

    async def _dial(self) -> WebSocketClientConnection:
        request = HTTPRequest(
            self._url,
            headers={"Authorization": f"Bearer {self._token()}"},
            connect_timeout=_CONNECT_SECONDS,
            request_timeout=_CONNECT_SECONDS,
            ca_certs=self._ca_file,
        )
        return await websocket_connect(
            request,
            ping_interval=_PING_SECONDS,
            ping_timeout=_PING_SECONDS,
            max_message_size=MAX_MESSAGE_BYTES,
        )

    async def _converse(
        self, connection: WebSocketClientConnection, conversation: Conversation
    ) -> None:
        outgoing: asyncio.Queue[str] = asyncio.Queue()
        hello = self._speaker.hello()
        outgoing.put_nowait(_encode_hello(hello))
        helpers = [asyncio.create_task(_write(connection, outgoing))]
        try:
            async with asyncio.timeout(WELCOME_SECONDS) as patience:
                while (text := await connection.read_message()) is not None:
                    message = conversation.hear(text)
                    if isinstance(message, Goodbye):
                        _say_goodbye(message)
                        return
                    if isinstance(message, Welcome):
                        patience.reschedule(None)
                        self._go_live(outgoing, hello)
                        helpers.append(asyncio.create_task(self._beat(message)))
                    self._speaker.receive(message)
        except TimeoutError:
            _log.warning("the controller did not answer the hello")
        except ViolationError as error:
            _log.error("the controller broke the protocol", error=str(error))
        except AgentError:
            raise
        except Exception:  # noqa: BLE001 - a fault must cost a link, not the agent
            # A message that was not acted on comes again on the next link.
            _log.exception("a message could not be handled")
        finally:
            await _cancel(helpers)

    def _go_live(self, outgoing: asyncio.Queue[str], hello: Hello) -> None:
        """Show the inventory and all open reports, then let new ones through."""
        for page in pages(self._speaker.inventory()):
            outgoing.put_nowait(encode(page))
        for report in self._speaker.unacknowledged():
            outgoing.put_nowait(encode(report))
        self._outgoing = outgoing
        # What changed since the hello was said to nobody.
        now = self._speaker.hello().capabilities
        if now != hello.capabilities:
            self.send(CapabilitiesChanged(capabilities=now))
        _log.info("link is up")

    async def _beat(self, welcome: Welcome) -> None:
        """Send heartbeats, and again what stays unacknowledged for too long."""
        shortest, longest = _HEARTBEAT_BOUNDS
        pause = min(max(welcome.heartbeat_seconds, shortest), longest)
        resend = Resend()
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(pause)
            self.send(heartbeat(self._speaker.usage()))
            reports = self._speaker.unacknowledged()
            if resend.is_due(reports, now=clock()):
                for report in reports:
                    self.send(report)


def heartbeat(usage: Usage | None) -> Heartbeat:
    """Return the sign of life of a machine that is as busy as *usage* says."""
    observed = None if usage is None else usage.model_dump(mode="json")
    return Heartbeat(sent_at=datetime.now(UTC), usage=observed)


def _encode_hello(hello: Hello) -> str:
    """Return *hello*; a picture that is too large must not keep the machine away."""
    try:
        return encode(hello)
    except ProtocolError as error:
        _log.error("the capabilities cannot be sent", error=str(error))
        return encode(hello.model_copy(update={"capabilities": {}}))


async def _write(
    connection: WebSocketClientConnection, outgoing: asyncio.Queue[str]
) -> None:
    """Write one message after the other; the reader notices when the link ends."""
    with suppress(WebSocketClosedError):
        while True:
            await connection.write_message(await outgoing.get())


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            _log.error("a helper of the link failed", error=repr(result))


def _say_goodbye(goodbye: Goodbye) -> None:
    _log.error(
        "the controller sent this agent away",
        code=goodbye.code,
        message=goodbye.message,
        retry=goodbye.retry,
    )


def _dismissed(goodbye: Goodbye) -> DismissedError:
    hint = {
        "protocol_unsupported": "bring the agent and the Hub to the same release",
        "revoked": "enrol this machine again",
    }.get(goodbye.code, "ask the administrator of the Hub")
    error = DismissedError(
        f"the controller sent this agent away ({goodbye.code}): "
        f"{goodbye.message.rstrip('.')}; {hint}"
    )
    if goodbye.code == "revoked":
        error.exit_code = os.EX_NOPERM
    return error
