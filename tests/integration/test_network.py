"""What the controller finds out about addresses, with real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fleet_contracts.enrolment import GREETING
from fleet_hub.adapters import network
from fleet_hub.adapters.network import HostNetwork


pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def a_listener(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Answer each line with *answer*; yield the port and what was heard."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readline())
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heard


async def test_a_nonce_is_said_and_its_answer_heard() -> None:
    """One line each way."""
    async with a_listener(b"an answer\r\n") as (port, heard):
        found = await HostNetwork().try_address("127.0.0.1", port, "a-nonce")
    assert found == "an answer"
    assert heard == [f"{GREETING} a-nonce\n".encode()]


@pytest.mark.parametrize("answer", [b"", b"no end", b"x" * 10_000 + b"\n"])
async def test_what_is_no_answer_is_none(answer: bytes) -> None:
    """Silence, half a line, and more than a line."""
    async with a_listener(answer) as (port, _):
        assert await HostNetwork().try_address("127.0.0.1", port, "n") is None


async def test_nobody_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed port at once, and a silent one in time."""
    async with a_listener(b"") as (port, _):
        pass
    assert await HostNetwork().try_address("127.0.0.1", port, "n") is None
    monkeypatch.setattr(network, "TRY_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert await HostNetwork().try_address("127.0.0.1", port, "n") is None


async def test_names_are_resolved_and_nonsense_has_no_address() -> None:
    """An address is its own; a name that is too long is none."""
    hosts = HostNetwork()
    assert await hosts.resolve("127.0.0.1") == ("127.0.0.1",)
    assert "127.0.0.1" in await hosts.resolve("localhost")
    for nonsense in ("x" * 300, "no-such-name.invalid", "a..b"):
        assert await hosts.resolve(nonsense) == ()


async def test_the_hubs_addresses_are_known_by_name_and_by_interface() -> None:
    """This machine's own ones need no configuration."""
    hosts = HostNetwork(("192.0.2.7", "", "no-such-name.invalid"))
    assert not hosts.is_hubs("192.0.2.7")
    await hosts.refresh()
    assert hosts.is_hubs("192.0.2.7")
    assert not hosts.is_hubs("192.0.2.8")
    assert hosts.is_hubs("127.0.0.1")
    assert not hosts.is_hubs("nonsense")
