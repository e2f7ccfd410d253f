"""A short-lived listener at which the controller tries this machine's address.

It answers one nonce with the key that only the controller was told, and nothing else.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fleet_agent.errors import SettingsError
from fleet_contracts.enrolment import GREETING, LONGEST_LINE, answer_to
from fleet_contracts.protocol import AddressOffer


_LINE_SECONDS = 5.0


@asynccontextmanager
async def listening(*, bind: str, advertise: str) -> AsyncIterator[AddressOffer]:
    """Listen on *bind* and yield what to tell the controller of *advertise*.

    Raises:
        SettingsError: *bind* is no address of this machine.
    """
    key = secrets.token_urlsafe(32)

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            async with asyncio.timeout(_LINE_SECONDS):
                line = await reader.readuntil(b"\n")
                greeting, _, nonce = line.decode("ascii").strip().partition(" ")
                if greeting == GREETING and nonce:
                    writer.write(f"{answer_to(nonce, key)}\n".encode())
                    await writer.drain()
        except (OSError, EOFError, TimeoutError, ValueError, asyncio.LimitOverrunError):
            # Whoever that was, it was not the controller.
            return
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    try:
        server = await asyncio.start_server(answer, bind, 0, limit=LONGEST_LINE)
    except OSError as error:
        raise SettingsError(
            f"this computer cannot listen at {bind}: {error.strerror or error}; name "
            "one of its own addresses with --bind-address"
        ) from error
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield AddressOffer(address=advertise, port=port, key=key)
