"""How tests wait for an event, how long before they give it up, and on which ports."""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, overload


PATIENCE: Final = 120.0
"""No event of a test takes so long, however busy the machine is."""
LOOK_SECONDS: Final = 0.05
"""Between two looks at what another process does, which sets no event here."""

_Value = TypeVar("_Value")


@overload
async def until_so(look: Callable[[], Awaitable[_Value]], what: str) -> _Value: ...


@overload
async def until_so(look: Callable[[], _Value], what: str) -> _Value: ...


async def until_so(look: Callable[[], Any], what: str) -> Any:
    """Return the first truthy answer of *look*, which asks another process.

    Raises:
        AssertionError: there was none in time.
    """
    answer: Any = None
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                told = look()
                answer = await told if inspect.isawaitable(told) else told
                if answer:
                    return answer
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise AssertionError(f"not in time: {what}; last: {answer!r}") from None


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
