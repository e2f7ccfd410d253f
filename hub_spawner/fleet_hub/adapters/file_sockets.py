"""The two ends of a transfer of files, joined here: one machine's into another's.

What comes in goes out before more is taken in, so nothing piles up; it is not looked
at.  Each end is a machine with its own token, and may be there only for the one
allocation that the controller has given it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import structlog
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler
from typing_extensions import override

from fleet_hub.adapters.agent_socket import bearer
from fleet_hub.controller import copying
from fleet_hub.controller.core import Core
from fleet_hub.controller.enrolling import machine_of


log = structlog.get_logger()

STALL_SECONDS: Final = 60.0
"""How long a receiver may take no more before its transfer is broken off."""
FRAMING_BYTES: Final = 4 << 30
"""What names and frames may add to the bytes of files: a bound for a hostile pair."""

_Key = tuple[str, int]


@dataclass(slots=True, eq=False)
class Transfer:
    """One receiver, and who sends to it once they have come."""

    receiver: ReceiveSocket
    sender: SendSocket | None = None
    passed: int = 0

    def end(self, code: int, why: str) -> None:
        """Hang up on both."""
        for socket in (self.receiver, self.sender):
            if socket is not None:
                socket.close(code, why)


class Transfers:
    """The transfers under way; what is not here has to begin anew."""

    def __init__(self) -> None:
        """Begin with none."""
        self._transfers: dict[_Key, Transfer] = {}

    def begin(self, key: _Key, receiver: ReceiveSocket) -> None:
        """Expect a sender for *receiver*; an earlier receiver is let go."""
        earlier = self._transfers.pop(key, None)
        if earlier is not None:
            earlier.end(1012, "begun anew")
        self._transfers[key] = Transfer(receiver)

    def join(self, key: _Key, sender: SendSocket) -> Transfer | None:
        """Return what *sender* may send to; None: nobody waits for it."""
        transfer = self._transfers.get(key)
        if transfer is None or transfer.sender is not None:
            return None
        transfer.sender = sender
        return transfer

    def leave(self, key: _Key, socket: WebSocketHandler) -> None:
        """One end has gone, so the other one must."""
        transfer = self._transfers.get(key)
        if transfer is not None and socket in {transfer.receiver, transfer.sender}:
            del self._transfers[key]
            transfer.end(1012, "the other machine has gone")

    def __len__(self) -> int:
        """How many there are."""
        return len(self._transfers)


class _End(WebSocketHandler):
    """What both ends have in common."""

    @override
    def initialize(self, *, core: Core, transfers: Transfers) -> None:
        self._core = core
        self._transfers = transfers

    @property
    @override
    def ping_interval(self) -> float:
        """No pings: their answers would wait behind the files."""
        return 0

    @property
    def key(self) -> _Key:
        """The allocation and its epoch, from the path."""
        return self.path_kwargs["allocation"], int(self.path_kwargs["epoch"])

    def machine(self) -> str:
        """Return who dials.

        Raises:
            HTTPError: 401; nobody whom we know.
        """
        token = bearer(self.request.headers.get("Authorization"))
        machine = machine_of(self._core, token) if token else None
        if machine is None:
            self.set_header("WWW-Authenticate", "Bearer")
            raise HTTPError(401, "a machine token is needed")
        return machine

    @override
    def on_close(self) -> None:
        self._transfers.leave(self.key, self)


class ReceiveSocket(_End):
    """The machine that is to have the files."""

    @override
    def prepare(self) -> None:
        """Answer 403 to whoever has no such files to fetch now."""
        if copying.fetching(self._core, self.machine(), *self.key) is None:
            raise HTTPError(403, "no files are to be fetched for this allocation")

    @override
    def open(self, *args: str, **kwargs: str) -> None:
        record = self._core.model.by_allocation(*self.key)
        order = copying.order_to_send(self._core, record) if record else None
        origin = record.origin if record else None
        self._transfers.begin(self.key, self)
        if (
            order is None
            or origin is None
            or not self._core.links.send(origin.home.machine, order)
        ):
            self.close(1013, "the machine with the files is away")

    @override
    def on_message(self, message: str | bytes) -> None:
        """All has arrived: nothing else is ever said by this end."""
        self._transfers.leave(self.key, self)


class SendSocket(_End):
    """The machine that has the files."""

    _transfer: Transfer | None = None

    @override
    def prepare(self) -> None:
        """Answer 403 to whoever was not told to send this, or not now."""
        self._name = self.machine()
        if copying.sending(self._core, self._name, *self.key) is None:
            raise HTTPError(403, "these files are not to be sent")
        self._transfer = self._transfers.join(self.key, self)
        if self._transfer is None:
            raise HTTPError(409, "nobody waits for these files")

    @override
    def open(self, *args: str, **kwargs: str) -> None:
        return

    @override
    async def on_message(self, message: str | bytes) -> None:
        """Pass a part on, and take the next once it has gone."""
        transfer = self._transfer
        if transfer is None:
            return
        transfer.passed += len(message)
        limit = self._core.settings.copy_limit_bytes + FRAMING_BYTES
        is_wanted = copying.sending(self._core, self._name, *self.key) is not None
        if not is_wanted or transfer.passed > limit or isinstance(message, str):
            transfer.end(1008, "no longer wanted")
            return
        try:
            async with asyncio.timeout(STALL_SECONDS):
                await transfer.receiver.write_message(message, binary=True)
        except (TimeoutError, WebSocketClosedError, StreamClosedError):
            transfer.end(1012, "the other machine takes no more")
