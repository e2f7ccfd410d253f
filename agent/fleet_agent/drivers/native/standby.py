"""Keeps a process ready for the notebook that was stopped last.

It has imported what a notebook server needs, in its owner's own sandbox, and waits for
its launch message.  It serves one start at most, holds no secret, and ends with the
agent, because the agent's end closes its channel.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.native.confined import Confined, ConfinedEndedError
from fleet_agent.drivers.native.confining import Footing, confine
from fleet_agent.drivers.native.ending import Ending
from fleet_agent.drivers.native.limits import ControlGroups
from fleet_agent.drivers.native.processes import identify
from fleet_agent.drivers.native.records import Record
from fleet_agent.drivers.native.runs import RunFolder


_STAND_SECONDS = 30.0
"""A sandbox that does not stand after so long is given up."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    footing: Footing
    folder: RunFolder
    confined: Confined
    record: Record


class Standby:
    """One process at most, for one footing."""

    def __init__(
        self, base: Path, ending: Ending, *, root: bool, groups: ControlGroups | None
    ) -> None:
        """Keep its folder below *base*; nothing is started yet."""
        self._groups = groups
        self._base = base
        self._ending = ending
        self._root = root
        self._waiting: _Waiting | None = None
        self._one_at_a_time = asyncio.Lock()

    async def open(self) -> None:
        """Remove what an agent that was killed has left."""
        for folder in RunFolder.all(self._base):
            await self._ending.undo(Record.begin(folder), folder, grace_seconds=0)

    def take(self, footing: Footing, folder: RunFolder) -> Confined | None:
        """Return the process, if it stands on *footing*; what it has becomes *folder*.

        It may still import.  None: there is none, and one that waits for another
        footing waits on.
        """
        waiting = self._waiting
        if waiting is None or waiting.footing != footing:
            return None
        if waiting.confined.process.poll() is not None:
            return None
        folder.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # What is mounted stays mounted under its new name.
        waiting.folder.path.rename(folder.path)
        self._waiting = None
        return waiting.confined

    async def renew(self, footing: Footing) -> None:
        """Keep a process ready for *footing*, instead of what waits now."""
        async with self._one_at_a_time:
            await self._end()
            folder = RunFolder(self._base / secrets.token_hex(12))
            record = Record.begin(folder)
            try:
                confined = confine(
                    footing, folder, root=self._root, groups=self._groups
                )
            except (DriverError, OSError) as error:
                # The next start tells it to who can do something about it.
                _log.warning("no process is kept ready", error=str(error))
                await self._ending.undo(record, folder, grace_seconds=0)
                return
            self._ending.adopt(confined.process)
            waiting = _Waiting(
                footing=footing,
                folder=folder,
                confined=confined,
                record=replace(record, supervisor=identify(confined.process.pid)),
            )
            try:
                # Until then the sandbox tool looks for things in its folder by name.
                async with asyncio.timeout(_STAND_SECONDS):
                    await confined.heard("contained")
            except (ConfinedEndedError, TimeoutError) as error:
                _log.warning("no process is kept ready", error=str(error))
                await self._give_up(waiting)
                return
            self._waiting = waiting

    async def close(self) -> None:
        """End the process, if there is one."""
        async with self._one_at_a_time:
            await self._end()

    async def _end(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            await self._give_up(waiting)

    async def _give_up(self, waiting: _Waiting) -> None:
        waiting.confined.close()
        await self._ending.undo(waiting.record, waiting.folder, grace_seconds=0)
