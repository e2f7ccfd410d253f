"""The controller's place on its machine: its address, and how many may be connected."""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from tornado.netutil import bind_sockets

from fleet_hub.errors import ConfigurationError
from fleet_hub.places import CONTROLLER_PORT_VARIABLE


_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_BIND_SECONDS: Final = 3.0
_BIND_POLL_SECONDS: Final = 0.05


async def listen(url: str, *, beyond_loopback: bool) -> list[socket.socket]:
    """Return the sockets that listen at *url*.

    Raises:
        ConfigurationError: the address is taken, or reaches beyond this machine.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    if host not in _LOOPBACK and not beyond_loopback:
        raise ConfigurationError(
            f"{url} can be reached from other machines. Use 127.0.0.1, or set "
            "FleetService.allow_remote if TLS or a trusted network is in front."
        )
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _BIND_SECONDS
    while True:
        try:
            return bind_sockets(port, address=host)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            if loop.time() < deadline:
                # A controller that was killed a moment ago may not be gone yet.
                await asyncio.sleep(_BIND_POLL_SECONDS)
                continue
            raise ConfigurationError(
                f"port {port} on {host} is in use. Is another JupyterHub Fleet "
                "running? Stop it, or choose another port with "
                f"{CONTROLLER_PORT_VARIABLE}."
            ) from error


def raise_open_files_limit() -> None:
    """Allow a socket for each agent and each waiting reader, as far as we may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
