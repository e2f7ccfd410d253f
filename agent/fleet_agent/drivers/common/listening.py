"""Where does a notebook server listen, and does it answer yet?"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from fleet_agent.drivers.base import DriverError
from fleet_contracts.reasons import Reason


_BACKLOG = 128
_RETRY_SECONDS = 0.015
_SERVER_ERROR = 500
_ANY = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - looked up


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where servers listen, and under which name the Hub's proxy reaches them."""

    bind: str = "127.0.0.1"
    advertise: str = "127.0.0.1"
    ports: tuple[int, int] | None = None
    """The first and last port that may be used; None: whichever is free."""

    @property
    def local(self) -> str:
        """Where this machine itself reaches what listens."""
        return _ANY.get(self.bind, self.bind)


def listen(addresses: Addresses) -> socket.socket:
    """Return a socket that listens already, so that nobody can take its port.

    Raises:
        DriverError: no port is free, or the address is not this machine's.
    """
    first, last = addresses.ports or (0, 0)
    family = socket.AF_INET6 if ":" in addresses.bind else socket.AF_INET
    problem: OSError | None = None
    for port in range(first, last + 1):
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((addresses.bind, port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            problem = error
        else:
            return listener
    raise DriverError(
        Reason.PORT_TAKEN,
        f"nothing can listen on {addresses.bind}, ports {first} to {last}: {problem}",
        detail="This machine has no free network port for the notebook server.",
    )


def at_address(url: str, host: str, port: int) -> str:
    """Return *url* as it is at *host* and *port*."""
    name = f"[{host}]" if ":" in host else host
    return urlunsplit(urlsplit(url)._replace(netloc=f"{name}:{port}"))


async def answered(addresses: Addresses, port: int, prefix: str) -> None:
    """Return when the server answers on its own machine, with anything but a failure.

    Never gives up: the caller has a deadline, and watches the process.
    """
    host = addresses.local
    while True:
        try:
            status = await _ask(host, port, f"{prefix}api")
        except (OSError, EOFError, ValueError):
            status = _SERVER_ERROR
        if status < _SERVER_ERROR:
            return
        await asyncio.sleep(_RETRY_SECONDS)


async def _ask(host: str, port: int, path: str) -> int:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        request = (
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
        )
        writer.write(request.encode())
        status_line = await reader.readuntil(b"\r\n")
        return int(status_line.split()[1])
    finally:
        writer.close()
