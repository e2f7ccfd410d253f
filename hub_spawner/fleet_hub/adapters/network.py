"""Addresses in the real world: names, our own interfaces, and whether one answers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from fleet_contracts.enrolment import GREETING, LONGEST_LINE
from fleet_hub.controller.addresses import canonical


TRY_SECONDS: Final = 5.0
_RESOLVE_SECONDS: Final = 5.0
_ANY_PORT: Final = 9


class HostNetwork:
    """The network as the controller's machine sees it.

    The Hub's proxy is expected to see it likewise: both run in one network.
    """

    def __init__(self, hub_hosts: Sequence[str] = ()) -> None:
        """Count *hub_hosts*, names or addresses, as the Hub's and its proxy's."""
        self._hub_hosts = tuple(dict.fromkeys(host for host in hub_hosts if host))
        self._hubs: frozenset[str] = frozenset()

    async def refresh(self) -> None:
        """Resolve the Hub's names again; one that cannot be resolved keeps nothing."""
        found = [await self.resolve(host) for host in self._hub_hosts]
        addresses = {canonical(address) for some in found for address in some}
        self._hubs = frozenset(filter(None, addresses))

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of *host*, itself if it is one; empty: it has none."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_RESOLVE_SECONDS):
                found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError, TimeoutError):
            return ()
        return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))

    async def try_address(self, address: str, port: int, nonce: str) -> str | None:
        """Return what answers to *nonce* there; None: nothing does, in time."""
        try:
            async with asyncio.timeout(TRY_SECONDS):
                reader, writer = await asyncio.open_connection(
                    address, port, limit=LONGEST_LINE
                )
                try:
                    writer.write(f"{GREETING} {nonce}\n".encode())
                    await writer.drain()
                    line = await reader.readuntil(b"\n")
                finally:
                    writer.close()
                    with suppress(OSError):
                        await writer.wait_closed()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            return None
        return line.decode("ascii", "replace").strip()

    def is_hubs(self, address: str) -> bool:
        """Whether *address* is the Hub's, its proxy's or this machine's own."""
        return address in self._hubs or _is_own(address)


def _is_own(address: str) -> bool:
    """Whether *address* is one of this machine's: then it is its own way there."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Nothing is sent: the kernel only chooses the address to speak from.
            probe.connect((address, _ANY_PORT))
            return bool(probe.getsockname()[0] == address)
    except OSError:
        return False
