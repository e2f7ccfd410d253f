"""How long tests wait for an event before they give it up, and which ports they take."""

from __future__ import annotations

import os
import random
import socket
from typing import Final


PATIENCE: Final = 120.0
"""No event of a test takes so long, however busy the machine is."""

_FIRST: Final = 11_000
_PORTS: Final = 1_000
_WORKERS: Final = 20
_given: set[int] = set()


def free_port() -> int:
    """Return a port of the loopback that stays free until the test listens there.

    It is below those that systems give to outgoing connections, no other worker of the
    session gets it, and this one gives it once.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    first = _FIRST + _PORTS * (int(worker) % _WORKERS)
    for port in random.sample(range(first, first + _PORTS), _PORTS):
        if port in _given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
    raise RuntimeError("no port is left")
