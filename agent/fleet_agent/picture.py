"""The machine's picture of itself, kept up to date beside everything else.

Detection may take seconds, and a broken tool minutes.  Registration waits only for the
facts that need no slow tool; what is not known yet is unknown, and follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from fleet_agent.probes.detect import detect_fast, pictures
from fleet_agent.probes.observe import observe
from fleet_agent.probes.same import same_facts
from fleet_agent.probes.settings import DetectSettings
from fleet_contracts.capabilities import Usage, WorkerCapabilities


_FIRST_SECONDS = 3.0
"""How long the first hello waits for the fast facts."""

_log = structlog.stdlib.get_logger("fleet_agent.picture")


class Picture:
    """The latest picture of the machine; all unknown until something is known."""

    def __init__(
        self,
        *,
        settings: DetectSettings,
        on_change: Callable[[WorkerCapabilities], None],
        period_seconds: float,
        observe_seconds: float = 30.0,
    ) -> None:
        """Detect with *settings*; *on_change* hears of each picture that differs."""
        self.latest = WorkerCapabilities()
        self._usage: Usage | None = None
        self._observe_seconds = observe_seconds
        self._settings = settings
        self._on_change = on_change
        self._period_seconds = period_seconds
        self._wanted = asyncio.Event()

    @property
    def usage(self) -> Usage | None:
        """How busy the machine was when it was last looked at, by whichever look."""
        known = [item for item in (self._usage, self.latest.usage) if item is not None]
        return max(known, key=lambda item: item.observed.observed_at, default=None)

    def look_again(self) -> None:
        """Detect now, not only when it is time; a tool that rested is tried again."""
        self._settings.memory.flights.forgive()
        self._wanted.set()

    async def notice_environments(self) -> None:
        """Detect again if an environment was built since the last look."""
        find = self._settings.find_environments
        if find is None:
            return
        try:
            built = {environment.ref for environment in await find()}
        except Exception as error:  # noqa: BLE001 - the next look tries again
            _log.error("environments cannot be found", exc_info=error)
            return
        if built - {facts.environment for facts in self.latest.torch}:
            self.look_again()

    async def look_fast(self) -> None:
        """Learn what needs no slow tool, and do not wait for it for long."""
        try:
            async with asyncio.timeout(_FIRST_SECONDS):
                self.latest = await detect_fast(self._settings)
        except TimeoutError:
            _log.warning("the first facts are late; the machine registers without them")

    async def run(self) -> None:
        """Detect at once, then periodically and on demand, until cancelled."""
        while True:
            self._wanted.clear()
            await self._look()
            try:
                async with asyncio.timeout(self._period_seconds):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    async def watch(self) -> None:
        """Observe how busy the machine is, again and again, until cancelled.

        Nobody is told: whoever speaks next takes the latest observation along.
        """
        while True:
            await asyncio.sleep(self._observe_seconds)
            try:
                self._usage = await observe(self._settings, self.latest) or self._usage
            except Exception as error:  # noqa: BLE001 - as in _look
                _log.error("observation failed", exc_info=error)

    async def _look(self) -> None:
        try:
            async for seen in pictures(self._settings):
                self._take(seen)
        except Exception as error:  # noqa: BLE001 - a broken probe must not end the agent
            _log.error("detection failed", exc_info=error)

    def _take(self, seen: WorkerCapabilities) -> None:
        if self.latest.settled and not seen.settled:
            # A picture in the making must not make known facts unknown again.
            return
        changed = not same_facts(seen, self.latest)
        self.latest = seen
        if changed:
            _log.info("capabilities changed", settled=seen.settled)
            self._on_change(seen)
