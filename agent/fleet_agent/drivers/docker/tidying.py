"""Removes what this agent made in the engine and nobody uses any more.

By rule, and by marks that only the agent sets: its labels, and the record of what it
fetched.  A user's files are in notebook folders, of which this module does not know.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any

import structlog

from fleet_agent.drivers.docker.containers import is_running, seconds
from fleet_agent.drivers.docker.engine import Client, Engine
from fleet_agent.drivers.docker.errors import (
    EngineAwayError,
    EngineError,
    NotThereError,
)
from fleet_agent.drivers.docker.fetched import FetchedImages
from fleet_agent.drivers.docker.keeping import Keeping, next_for_room, unused_too_long
from fleet_agent.drivers.docker.records import AGENT, RUN


LEFT_SECONDS = 3600.0
"""After which something of which nobody asked any more counts as left behind."""

_log = structlog.get_logger(__name__)


class Tidying:
    """Tidies up one engine after one agent."""

    def __init__(
        self,
        engine: Engine,
        fetched: FetchedImages,
        keeping: Keeping,
        *,
        is_known: Callable[[str], bool],
    ) -> None:
        """Leave the runs alone that *is_known* knows: somebody else ends them."""
        self._engine = engine
        self._fetched = fetched
        self._keeping = keeping
        self._is_known = is_known

    async def tidy(self, agent: str, *, now: float) -> None:
        """Remove what *agent* left behind and what was unused too long.

        Raises:
            EngineAwayError: the engine does not answer; the rest waits for next time.
        """
        await self._containers(agent, now=now)
        await self._volumes(agent)
        known = await asyncio.to_thread(self._fetched.all)
        running = await self._images_in_use()
        for image in unused_too_long(known, running, now=now, rule=self._keeping):
            await self._remove_image(image)
        await self.make_room(now=now)

    async def make_room(self, *, now: float) -> None:
        """Remove unused images, the oldest first, until the disk has room again.

        Raises:
            EngineAwayError: the engine does not answer.
        """
        root = (await self._engine.facts()).root
        while await asyncio.to_thread(_free, root) < self._keeping.free_bytes:
            known = await asyncio.to_thread(self._fetched.all)
            image = next_for_room(known, await self._images_in_use(), now=now)
            if image is None:
                return
            await self._remove_image(image)

    async def _containers(self, agent: str, *, now: float) -> None:
        """Remove containers of which no allocation knows and that do not run."""
        for item in await self._own_containers(agent):
            if self._is_known(str((item.get("Labels") or {}).get(RUN, ""))):
                continue
            with suppress(NotThereError):
                answer = await self._engine.ask(partial(_inspect_container, item["Id"]))
                if is_running(answer) or now - _last_event(answer) < LEFT_SECONDS:
                    continue
                _log.info("a container was left behind", container=item["Id"][:12])
                await self._quietly(partial(_remove_container, item["Id"]))

    async def _volumes(self, agent: str) -> None:
        """Remove the agent's volumes that no container has any more."""
        filters = {"dangling": True, "label": [f"{AGENT}={agent}"]}
        answer = await self._engine.ask(lambda client: client.volumes(filters=filters))
        for volume in answer.get("Volumes") or ():
            _log.info("a volume was left behind", volume=volume["Name"])
            await self._quietly(partial(_remove_volume, volume["Name"]))

    async def _remove_image(self, image: str) -> None:
        """Remove the names that the agent fetched *image* by, and it with the last."""
        _log.info("an unused image is removed", image=image)
        known = (await asyncio.to_thread(self._fetched.all))[image]
        for ref in known.refs:
            with suppress(NotThereError):
                found = await self._engine.ask(partial(_inspect_image, ref))
                # The name may be another image's by now.
                if found["Id"] == image:
                    # Not by force: an image that somebody uses after all stays.
                    await self._quietly(partial(_remove_image, ref))
        await asyncio.to_thread(self._fetched.forget, image)

    async def _images_in_use(self) -> Collection[str]:
        everything = await self._engine.ask(lambda client: client.containers(all=True))
        return {str(item.get("ImageID")) for item in everything}

    async def _own_containers(self, agent: str) -> list[dict[str, Any]]:
        filters = {"label": [f"{AGENT}={agent}"]}
        found: list[dict[str, Any]] = await self._engine.ask(
            lambda client: client.containers(all=True, filters=filters)
        )
        return found

    async def _quietly(self, question: Callable[[Client], object]) -> None:
        """Ask *question*; whatever the engine keeps for a reason may stay."""
        try:
            await self._engine.ask(question)
        except EngineAwayError:
            raise
        except EngineError as error:
            _log.info("something unused stays", error=str(error))


def _inspect_container(name: str, client: Client) -> dict[str, Any]:
    answer: dict[str, Any] = client.inspect_container(name)
    return answer


def _inspect_image(ref: str, client: Client) -> dict[str, Any]:
    answer: dict[str, Any] = client.inspect_image(ref)
    return answer


def _remove_image(ref: str, client: Client) -> None:
    client.remove_image(ref)


def _remove_container(name: str, client: Client) -> None:
    # With the volumes that nobody gave a name.
    client.remove_container(name, v=True)


def _remove_volume(name: str, client: Client) -> None:
    client.remove_volume(name)


def _free(root: str) -> float:
    """Return the free bytes where the engine keeps images; unknown is enough."""
    try:
        return shutil.disk_usage(root).free
    except OSError:
        return float("inf")


def _last_event(answer: dict[str, Any]) -> float:
    """Return when the described container was made or ended last."""
    state = answer.get("State") or {}
    times = (answer.get("Created"), state.get("StartedAt"), state.get("FinishedAt"))
    return max((seconds(str(text or "")) for text in times), default=0.0)
