"""Who wants to know when something happens to a container?

One thread listens to the engine's events for all containers of this agent.  An event
says only that it is worth looking again, and so does an engine that comes back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from docker.errors import DockerException
from requests.exceptions import RequestException

from fleet_agent.drivers.docker.engine import Engine
from fleet_agent.drivers.docker.records import AGENT


_RETRY_SECONDS = 0.5
_OVERLAP_SECONDS = 5
"""From when before a new connection events are asked for: none falls in between."""


class Watch:
    """Wakes those who listen for a container; costs one connection for all of them."""

    def __init__(self, engine: Engine) -> None:
        """Listen to *engine* from the first listener on."""
        self._engine = engine
        self._listeners: dict[str, set[asyncio.Event]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = Event()
        self._cut: Callable[[], None] | None = None
        self._thread: Thread | None = None
        self.outages = 0
        """How often the engine went away."""

    @contextmanager
    def listening(self, agent: str, container: str) -> Iterator[asyncio.Event]:
        """Give an event that is set whenever it is worth looking at *container*."""
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._closed.clear()
            self._thread = Thread(
                target=self._run, args=(agent,), name="docker events", daemon=True
            )
            self._thread.start()
        happened = asyncio.Event()
        self._listeners.setdefault(container, set()).add(happened)
        try:
            yield happened
        finally:
            listeners = self._listeners[container]
            listeners.discard(happened)
            if not listeners:
                del self._listeners[container]

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        if self._cut is not None:
            self._cut()
        self._thread = None

    def _run(self, agent: str) -> None:
        while not self._closed.is_set():
            with suppress(RequestException, DockerException, OSError, ValueError):
                self._listen(agent)
            if not self._closed.is_set():
                self._tell(self._lost)
                self._closed.wait(_RETRY_SECONDS)

    def _listen(self, agent: str) -> None:
        began = int(time.time()) - _OVERLAP_SECONDS
        with self._engine.another_client() as client:
            events = client.events(
                since=began,
                decode=True,
                filters={
                    "type": "container",
                    "event": ["die", "destroy"],
                    "label": f"{AGENT}={agent}",
                },
            )
            self._cut = events.close
            if self._closed.is_set():
                events.close()
            self._tell(self._wake_all)
            for event in events:
                self._tell(self._wake, event_container(event))

    def _tell(self, what: Callable[..., None], *more: Any) -> None:
        assert self._loop is not None  # noqa: S101 - set before the thread starts
        # The loop may be closed by now, and then nobody waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(what, *more)

    def _lost(self) -> None:
        self.outages += 1

    def _wake(self, container: str) -> None:
        for happened in self._listeners.get(container, ()):
            happened.set()

    def _wake_all(self) -> None:
        for listeners in self._listeners.values():
            for happened in listeners:
                happened.set()


def event_container(event: dict[str, Any]) -> str:
    """Return the id of the container that *event* is about."""
    return str((event.get("Actor") or {}).get("ID") or event.get("id") or "")
