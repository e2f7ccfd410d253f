"""Is an image on this machine, and how does it get there?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any

from docker.errors import DockerException
from docker.types import CancellableStream
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from fleet_agent.drivers.base import ProgressSink
from fleet_agent.drivers.common.efforts import SharedWork
from fleet_agent.drivers.docker.engine import Client, Engine, in_own_words
from fleet_agent.drivers.docker.errors import (
    EngineAwayError,
    EngineError,
    NotThereError,
)
from fleet_agent.drivers.docker.explain import engine_away, pull_failure, stalled_pull
from fleet_agent.drivers.docker.fetched import FetchedImages
from fleet_agent.drivers.docker.planning import Image
from fleet_agent.drivers.docker.progress import PullProgress
from fleet_contracts.reasons import Reason


_Said = Mapping[str, Any] | EngineError | None
"""A line of a pull, what ended it early, or None: it is over."""


class Images:
    """The images of one engine; each is pulled once, whoever asks for it."""

    def __init__(
        self,
        engine: Engine,
        fetched: FetchedImages,
        *,
        stall_seconds: float,
        make_room: Callable[[], Awaitable[None]],
    ) -> None:
        """Give up a pull of which nothing came for *stall_seconds*.

        What is pulled is noted in *fetched*, after *make_room* made some for it.
        """
        self._engine = engine
        self._fetched = fetched
        self._make_room = make_room
        self._stall_seconds = stall_seconds
        self._pulls: SharedWork[Image] = SharedWork()

    async def ensure(self, ref: str, progress: ProgressSink) -> Image:
        """Return the image *ref*, pulled now if it is not there.

        Raises:
            DriverError: it cannot be had.
        """
        try:
            found = await self._find(ref)
            if found is not None:
                await asyncio.to_thread(self._fetched.used, found.id, now=time.time())
                return found
            return await self._pulls.join(
                ref, lambda tell: self._pull(ref, tell), progress
            )
        except EngineAwayError as error:
            raise engine_away(Reason.PREPARE_FAILED, str(error)) from error
        except EngineError as error:
            raise pull_failure(str(error)) from error

    async def _find(self, ref: str) -> Image | None:
        try:
            answer = await self._engine.ask(lambda client: client.inspect_image(ref))
        except NotThereError:
            return None
        return Image.from_answer(answer)

    async def _pull(self, ref: str, tell: ProgressSink) -> Image:
        await self._make_room()
        before = await self._engine.ask(lambda client: client.images(quiet=True))
        pull, layers = _Pull(self._engine, ref), PullProgress()
        try:
            while True:
                async with asyncio.timeout(self._stall_seconds):
                    said = await pull.said.get()
                if said is None:
                    break
                if isinstance(said, EngineError):
                    raise said
                _check(said)
                progress = layers.take(said)
                if progress is not None:
                    tell(progress)
        except TimeoutError as error:
            raise stalled_pull(self._stall_seconds) from error
        finally:
            pull.give_up()
        found = await self._find(ref)
        if found is None:
            raise pull_failure("it was pulled, and is not there")
        new = found.id not in before
        await asyncio.to_thread(
            self._fetched.fetched, found.id, ref, new=new, now=time.time()
        )
        return found


class _Pull:
    """One pull under way, in a thread of its own: it may take an hour."""

    def __init__(self, engine: Engine, ref: str) -> None:
        self.said: asyncio.Queue[_Said] = asyncio.Queue()
        self._engine = engine
        self._ref = ref
        self._loop = asyncio.get_running_loop()
        self._given_up = False
        self._cut: Callable[[], None] | None = None
        # A daemon: an engine that hangs must not hold the agent's end.
        Thread(target=self._run, name="docker pull", daemon=True).start()

    def give_up(self) -> None:
        """End it: the engine stops fetching when nobody listens any more."""
        self._given_up = True
        if self._cut is not None:
            self._cut()

    def _run(self) -> None:
        try:
            client = self._engine.another_client()
            with client:
                self._listen(client)
        except (RequestException, HTTPError, DockerException, OSError) as error:
            self._tell(in_own_words(error))
        self._tell(None)

    def _listen(self, client: Client) -> None:
        answers: list[Any] = []
        client.hooks["response"].append(lambda answer, **_: answers.append(answer))
        lines = client.pull(self._ref, stream=True, decode=True)
        self._cut = CancellableStream(lines, answers[-1]).close
        if self._given_up:
            self._cut()
        for line in lines:
            self._tell(line)

    def _tell(self, said: _Said) -> None:
        # The loop may be closed by now, and then nobody waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.said.put_nowait, said)


def _check(line: Mapping[str, Any]) -> None:
    """Raise what a line of a pull says went wrong."""
    if "error" in line or "errorDetail" in line:
        detail = line.get("errorDetail") or {}
        raise pull_failure(str(detail.get("message") or line.get("error")))
