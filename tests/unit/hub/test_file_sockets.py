"""Where two machines' ends are joined: nothing piles up, and one end is no end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from fleet_hub.adapters import file_sockets
from fleet_hub.adapters.file_sockets import SendSocket, Transfer, Transfers
from fleet_hub.controller.settings import Settings


pytestmark = pytest.mark.asyncio

KEY = ("alloc", 1)


class End:
    """A socket that remembers why it was closed."""

    def __init__(self) -> None:
        """Be open."""
        self.closed: list[str] = []

    def close(self, code: int, why: str) -> None:
        """Close."""
        self.closed.append(why)


def ends() -> tuple[Any, Any]:
    """Return a receiver and a sender."""
    return End(), End()


async def test_a_sender_joins_the_one_who_waits_and_nobody_else() -> None:
    """Not before, not twice, not for another allocation."""
    transfers, (receiver, sender) = Transfers(), ends()
    assert transfers.join(KEY, sender) is None
    transfers.begin(KEY, receiver)
    assert transfers.join(("alloc", 2), sender) is None
    found = transfers.join(KEY, sender)
    assert isinstance(found, Transfer)
    assert found.receiver is receiver
    assert transfers.join(KEY, ends()[1]) is None


async def test_whoever_goes_takes_the_other_along() -> None:
    """From either side, once; a stranger's going changes nothing."""
    for goer in (0, 1):
        transfers, pair = Transfers(), ends()
        transfers.begin(KEY, pair[0])
        transfers.join(KEY, pair[1])
        transfers.leave(KEY, ends()[0])
        assert len(transfers) == 1
        transfers.leave(KEY, pair[goer])
        transfers.leave(KEY, pair[1 - goer])
        assert len(transfers) == 0
        assert pair[1 - goer].closed == ["the other machine has gone"]


async def test_a_receiver_that_begins_anew_lets_the_earlier_pair_go() -> None:
    """The sender is told again, and joins the new one."""
    transfers, (receiver, sender), (newer, _) = Transfers(), ends(), ends()
    transfers.begin(KEY, receiver)
    transfers.join(KEY, sender)
    transfers.begin(KEY, newer)
    assert receiver.closed == sender.closed == ["begun anew"]
    # Their closing, which comes later, ends nothing of the new one.
    transfers.leave(KEY, receiver)
    transfers.leave(KEY, sender)
    assert newer.closed == []
    found = transfers.join(KEY, ends()[1])
    assert found is not None
    assert found.receiver is newer


class Slow(End):
    """A receiver that takes a part only when the test lets it."""

    def __init__(self) -> None:
        """Take nothing yet."""
        super().__init__()
        self.taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def write_message(self, message: bytes, *, binary: bool) -> asyncio.Future[None]:
        """Take it once it is let."""
        assert binary
        return self.taken


def a_sender(receiver: Any, *, limit: int = 1 << 20) -> SendSocket:
    """Return a sender's end that is joined to *receiver*, without a network."""
    socket: Any = SendSocket.__new__(SendSocket)
    socket.path_kwargs = {"allocation": KEY[0], "epoch": str(KEY[1])}
    socket._core = SimpleNamespace(settings=Settings(copy_limit_bytes=limit))
    socket._name = "near"
    socket._transfer = Transfer(receiver)
    made: SendSocket = socket
    return made


async def test_no_part_is_taken_before_the_last_has_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server reads on only when this has returned: that is all that is held."""
    monkeypatch.setattr(file_sockets.copying, "sending", lambda *_: object())
    receiver = Slow()
    passing = asyncio.create_task(a_sender(receiver).on_message(b"part"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not passing.done()
    receiver.taken.set_result(None)
    await passing
    assert receiver.closed == []


async def test_a_receiver_that_takes_no_more_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a while, which is none here."""
    monkeypatch.setattr(file_sockets.copying, "sending", lambda *_: object())
    monkeypatch.setattr(file_sockets, "STALL_SECONDS", 0)
    receiver = Slow()
    await a_sender(receiver).on_message(b"part")
    assert receiver.closed == ["the other machine takes no more"]


async def test_a_pair_that_passes_more_than_may_be_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the two of them say that it is."""
    monkeypatch.setattr(file_sockets.copying, "sending", lambda *_: object())
    monkeypatch.setattr(file_sockets, "FRAMING_BYTES", 0)
    receiver = Slow()
    await a_sender(receiver, limit=3).on_message(b"part")
    assert receiver.closed == ["no longer wanted"]
