"""Asks the engine: the one place that knows the Docker SDK, and never blocks the loop."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import urlsplit

import docker
from docker.errors import APIError, DockerException, NotFound
from requests.exceptions import RequestException

from fleet_agent.drivers.common.threads import to_its_end
from fleet_agent.drivers.docker.errors import (
    EngineAwayError,
    EngineError,
    InTheWayError,
    NotThereError,
    RefusedError,
)
from fleet_agent.drivers.docker.facts import EngineFacts


Answer = TypeVar("Answer")
Client = Any
"""The SDK's ``APIClient``, which has no types."""

_SECONDS = 60
"""How long the engine may take for one answer: a slow disk makes a container slowly."""
_THREADS = 16
_CONFLICT = 409


class Engine:
    """One container engine, whether it answers now or not."""

    def __init__(self, host: str) -> None:
        """Ask at *host*; nothing is asked yet."""
        self._host = host
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="docker")
        self._lock = Lock()
        self._client: Client | None = None
        self._facts: EngineFacts | None = None

    async def ask(self, question: Callable[[Client], Answer]) -> Answer:
        """Return the engine's answer to *question*, asked in a thread.

        A question that is cancelled has been answered when the ``CancelledError``
        arrives: what the engine made meanwhile is there to be found.

        Raises:
            EngineError: the engine does not answer, or says no.
        """
        return await to_its_end(partial(self.ask_here, question), self._threads)

    def ask_here(self, question: Callable[[Client], Answer]) -> Answer:
        """Do as ``ask`` does, in this thread."""
        try:
            knock(self._host)
            return question(self._connected())
        except (RequestException, DockerException, OSError) as error:
            translated = in_own_words(error)
            if isinstance(translated, EngineAwayError):
                # Another engine may answer next time.
                self._facts = None
            raise translated from error

    def another_client(self) -> Client:
        """Return a client of its own, for a stream that may be cut off.

        Raises:
            OSError: nobody listens.
        """
        knock(self._host)
        return docker.APIClient(
            base_url=self._host, version="auto", timeout=_SECONDS, max_pool_size=1
        )

    async def facts(self) -> EngineFacts:
        """Return what the engine says about itself.

        Raises:
            EngineError: it does not answer.
        """
        if self._facts is None:
            self._facts = await self.ask(
                lambda client: EngineFacts.from_answers(client.version(), client.info())
            )
        return self._facts

    def close(self) -> None:
        """Let go of the connections; may be asked again later."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> Client:
        with self._lock:
            if self._client is None:
                self._client = docker.APIClient(
                    base_url=self._host,
                    version="auto",
                    timeout=_SECONDS,
                    max_pool_size=_THREADS,
                )
            return self._client


def knock(host: str) -> None:
    """Return if somebody listens at *host*.

    The SDK forgets its socket, open, when nobody does.

    Raises:
        OSError: nobody listens.
    """
    parts = urlsplit(host)
    if parts.scheme == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_SECONDS)
            probe.connect(parts.path)


def in_own_words(error: Exception) -> EngineError:
    """Return what *error* of the SDK means to this driver."""
    if not isinstance(error, APIError):
        return EngineAwayError(str(error))
    words = str(error.explanation or error)
    if isinstance(error, NotFound):
        return NotThereError(words)
    if error.status_code == _CONFLICT:
        return InTheWayError(words)
    return RefusedError(words)
