"""How does a container end, and how do we know that it has?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import structlog

from fleet_agent.drivers.base import Condition, Standing
from fleet_agent.drivers.docker.engine import Engine
from fleet_agent.drivers.docker.errors import (
    EngineAwayError,
    EngineError,
    InTheWayError,
    NotThereError,
)
from fleet_agent.drivers.docker.explain import End, why_it_ended, without_secrets
from fleet_agent.drivers.docker.records import AGENT, Record
from fleet_agent.drivers.docker.watch import Watch, event_container


_LOG_LINES = 20
_REMOVAL_SECONDS = 60.0
_REMEMBERED_EVENTS = 200
"""Some fewer than an engine remembers: with so many, a start may be forgotten."""

_log = structlog.get_logger(__name__)


class Containers:
    """Looks at containers, waits for their ends and brings them about."""

    def __init__(self, engine: Engine, watch: Watch) -> None:
        """Ask *engine*, and look again when *watch* says so."""
        self._engine = engine
        self._watch = watch

    async def find(self, record: Record) -> list[str]:
        """Return the ids of all containers of the run, those never started included.

        Raises:
            EngineError: the engine does not answer, so nothing is known.
        """
        found = await self._engine.ask(
            lambda client: client.containers(all=True, filters=record.filters())
        )
        return [item["Id"] for item in found]

    async def environments(self, agent: str) -> list[Mapping[str, str]]:
        """Return the variables of all of *agent*'s containers that run.

        Raises:
            EngineError: the engine does not answer, so nothing is known.
        """
        filters = {"label": [f"{AGENT}={agent}"]}
        found: list[Mapping[str, str]] = []
        for item in await self._engine.ask(
            lambda client: client.containers(filters=filters)
        ):
            answer = await self.look(item["Id"]) or {}
            told = (answer.get("Config") or {}).get("Env") or ()
            found.append(dict(one.partition("=")[::2] for one in told))
        return found

    async def any(self, agent: str) -> bool:
        """Say whether there is any container of *agent*, whether it runs or not.

        Raises:
            EngineError: the engine does not answer, so nothing is known.
        """
        filters = {"label": [f"{AGENT}={agent}"]}
        return bool(
            await self._engine.ask(
                lambda client: client.containers(all=True, filters=filters)
            )
        )

    async def look(self, container: str) -> Mapping[str, Any] | None:
        """Return the engine's description of *container*; None: there is none.

        Raises:
            EngineError: the engine does not answer, so nothing is known.
        """
        try:
            answer: Mapping[str, Any] = await self._engine.ask(
                lambda client: client.inspect_container(container)
            )
        except NotThereError:
            return None
        return answer

    async def ended(self, record: Record, *, meanwhile: bool = False) -> Condition:
        """Return when nothing of the run runs any more, with why.

        An engine that does not answer is waited for: silence is no end.  What ended
        *meanwhile*, while no agent looked, may have ended with an earlier engine.
        """
        container = record.container
        if container is None:
            return Condition(
                standing=Standing.GONE,
                explanation=why_it_ended(End(), "", engine_restarted=False),
            )
        answer, restarted = await self.until_gone(record, container)
        if meanwhile and answer is not None and not restarted:
            restarted = await self._outlived_its_engine(container, answer)
        end = End(removed=True) if answer is None else End.from_answer(answer)
        log = await self.log_tail(container, answer)
        if log:
            _log.info(
                "a notebook's container ended",
                container=container[:12],
                exit_code=end.exit_code,
                engine_said=end.error or None,
                log_tail=log,
            )
        return Condition(
            standing=Standing.GONE,
            # A code that the engine's own end brought about says nothing.
            exit_code=None if restarted else end.exit_code,
            explanation=why_it_ended(end, log, engine_restarted=restarted),
        )

    async def stop(self, record: Record, *, grace_seconds: float) -> None:
        """End all containers of the run, gently within the grace, and remove them.

        Raises:
            EngineError: it is not known to be done; try again.
        """
        for container in await self.find(record):
            if grace_seconds > 0 and await self._ask_to_end(container):
                with suppress(TimeoutError):
                    async with asyncio.timeout(grace_seconds):
                        await self.until_gone(record, container)
            await self._remove(record, container)

    async def log_tail(self, container: str, answer: Mapping[str, Any] | None) -> str:
        """Return the last lines of *container*'s log, for operators; empty: none."""
        if answer is None:
            return ""
        try:
            said: bytes = await self._engine.ask(
                lambda client: client.logs(container, tail=_LOG_LINES)
            )
        except EngineError:
            return ""
        environment = (answer.get("Config") or {}).get("Env") or ()
        return without_secrets(said.decode(errors="replace"), environment)

    async def until_gone(
        self, record: Record, container: str
    ) -> tuple[Mapping[str, Any] | None, bool]:
        """Return once *container* does not run, with its last description.

        Also tells whether the engine went away since it was last seen running; one
        that does not answer is waited for.
        """
        with self._watch.listening(record.agent, container) as happened:
            outages, away = self._watch.outages, False
            while True:
                happened.clear()
                try:
                    answer = await self.look(container)
                except EngineAwayError:
                    away = True
                    await self._again(happened)
                    continue
                if answer is None or not is_running(answer):
                    return answer, away or outages != self._watch.outages
                outages, away = self._watch.outages, False
                await happened.wait()

    async def _outlived_its_engine(
        self, container: str, answer: Mapping[str, Any]
    ) -> bool:
        """Whether the engine that answers is not the one that started *container*.

        Without live-restore no container outlives its engine.  An engine remembers what
        happened since it started, up to a number of events.
        """
        if (await self._engine.facts()).live_restore:
            return False
        began = int(seconds(str((answer.get("State") or {}).get("StartedAt"))))
        events: list[dict[str, Any]] = await self._engine.ask(
            lambda client: list(
                client.events(since=began - 1, until=int(time.time()) + 1, decode=True)
            )
        )
        seen = any(
            event.get("Action") == "start" and event_container(event) == container
            for event in events
        )
        return not seen and len(events) < _REMEMBERED_EVENTS

    async def _again(self, happened: asyncio.Event) -> None:
        """Return when it is worth asking an engine again that did not answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                await happened.wait()

    async def _ask_to_end(self, container: str) -> bool:
        try:
            await self._engine.ask(lambda client: client.kill(container, "SIGTERM"))
        except (NotThereError, InTheWayError):
            return False
        return True

    async def _remove(self, record: Record, container: str) -> None:
        with self._watch.listening(record.agent, container) as happened:
            try:
                await self._engine.ask(
                    lambda client: client.remove_container(
                        container, force=True, v=True
                    )
                )
            except NotThereError:
                return
            except InTheWayError:
                # Somebody else removes it already.
                async with asyncio.timeout(_REMOVAL_SECONDS):
                    while await self.look(container) is not None:
                        await self._again(happened)
                        happened.clear()


def seconds(text: str) -> float:
    """Return a time of the engine's, which has nine digits, in seconds since 1970."""
    try:
        return datetime.fromisoformat(f"{text[:19]}+00:00").timestamp()
    except ValueError:
        return 0.0


def is_running(answer: Mapping[str, Any]) -> bool:
    """Whether anything of the described container runs."""
    state = answer.get("State") or {}
    return any(state.get(name) for name in ("Running", "Paused", "Restarting"))
