"""The connections over which files travel: dialled out, as the link is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from fleet_agent.addresses import files_url
from fleet_agent.ledger_entry import Key
from fleet_contracts.protocol import MAX_MESSAGE_BYTES


_CONNECT_SECONDS: Final = 20.0
STALL_SECONDS: Final = 60.0
"""How long nothing may come or go before a transfer counts as broken."""


class Dial(Protocol):
    """Opens one end of a transfer."""

    async def __call__(self, key: Key, end: str) -> WebSocketClientConnection:
        """Return the ``send`` or the ``receive`` end of the transfer of *key*."""


async def nowhere(key: Key, end: str) -> WebSocketClientConnection:
    """Open nothing: no controller is known."""
    raise ConnectionRefusedError(f"no line to {end} for {key.allocation}")


class Lines:
    """Dials the controller of one machine."""

    def __init__(
        self, *, service: str, token: Callable[[], str], ca_file: str | None = None
    ) -> None:
        """Dial *service*; *token* is read anew for each attempt."""
        self._service = service
        self._token = token
        self._ca_file = ca_file

    async def __call__(self, key: Key, end: str) -> WebSocketClientConnection:
        """Return an open end.

        Without pings: they would wait behind the files.  Whoever waits has a limit.
        """
        request = HTTPRequest(
            files_url(self._service, key.allocation, key.epoch, end),
            headers={"Authorization": f"Bearer {self._token()}"},
            connect_timeout=_CONNECT_SECONDS,
            request_timeout=_CONNECT_SECONDS,
            ca_certs=self._ca_file,
        )
        return await websocket_connect(request, max_message_size=MAX_MESSAGE_BYTES)
