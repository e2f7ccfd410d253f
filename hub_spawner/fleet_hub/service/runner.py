"""The controller in an event loop: cycles when something happened, ticks, claims."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import structlog

from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.claiming import Claims
from fleet_hub.controller.core import Core
from fleet_hub.controller.retelling import AT_A_TIME, retell
from fleet_hub.controller.ticking import tick
from fleet_hub.service.garbage import Memory
from fleet_hub.service.news import News
from fleet_hub.service.routes import RouteChecks


log = structlog.get_logger()

TICK_SECONDS: Final = 0.5
TELL_SECONDS: Final = 0.05
"""Between the goes in which a long line is told its news."""
SWEPT_AT_A_TIME: Final = 20
RETRY_SECONDS: Final = 1.0
CATALOG_TICKS: Final = 2
"""An edit is read once two looks in a row found the same."""
TIDY_TICKS: Final = 60


class Runner:
    """Runs one controller until it is closed."""

    def __init__(
        self,
        core: Core,
        *,
        refresh_catalog: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """Run *core*; nothing happens before ``start``."""
        self.core = core
        self._refresh_catalog = refresh_catalog
        self._refreshing: asyncio.Task[None] | None = None
        self.claims = Claims(core)
        self.routes = RouteChecks(core.hub)
        self.news = News()
        """What open pages hear of."""
        self._memory = Memory()
        self._scheduled = False
        self._ticking: asyncio.Task[None] | None = None
        self._telling: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin, in the running loop."""
        self.core.on_wanted = self._schedule
        self._ticking = asyncio.create_task(self._tick())
        self._schedule()

    def _schedule(self) -> None:
        """Run one cycle soon, for however many reasons there are."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        # Wanted again or not: an ask may have been decided on the spot.
        if self.core.wanted:
            self._cycle()
        self.news.note()

    def _cycle(self) -> None:
        try:
            run_cycle(self.core)
            self.claims.ask_hub()
            self._tell_later()
        except Exception:
            # The next event, or the next tick, tries again: nothing was changed.
            log.exception("admission cycle failed")
            self.core.wanted = True

    def _tell_later(self) -> None:
        if self.core.engine.has_untold and self._telling is None:
            loop = asyncio.get_running_loop()
            self._telling = loop.call_later(TELL_SECONDS, self._tell)

    def _tell(self) -> None:
        self._telling = None
        try:
            retell(self.core, AT_A_TIME)
        except Exception:
            # The next cycle or tick tells them: nobody was told a half.
            log.exception("the line was not told")
            return
        self._tell_later()

    def _sweep(self) -> None:
        """Look for what no event brought up; finding anything is our own fault."""
        missed = self.core.engine.sweep(self.core.clock.now(), most=SWEPT_AT_A_TIME)
        if missed:
            log.warning("sweep found what no event brought up", missed=missed)
            self.core.want_cycle()

    def _refresh(self) -> None:
        """Look at the catalog, unless an earlier look is not over yet."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh_once())

    async def _refresh_once(self) -> None:
        if self._refresh_catalog is None:
            return
        try:
            if await self._refresh_catalog():
                self.core.want_cycle()
        except Exception:
            log.exception("the catalog was not looked at")

    async def _tick(self) -> None:
        count = 0
        while True:
            await asyncio.sleep(TICK_SECONDS)
            count += 1
            try:
                if count % CATALOG_TICKS == 0:
                    self._refresh()
                tick(self.core)
                if self.core.engine.is_due(self.core.clock.now()):
                    self.core.want_cycle()
                elif not self.core.wanted:
                    self.core.engine.tidy(self.core.clock.now())
                    self._sweep()
                    self.core.store.write_back()
                self._tell_later()
                self.claims.ask_hub()
                if count % TIDY_TICKS == 0:
                    self.core.store.tidy()
                    self._memory.put_aside()
            except Exception:
                log.exception("tick failed")
                await asyncio.sleep(RETRY_SECONDS)
            if self.core.wanted:
                self._schedule()

    async def close(self) -> None:
        """Stop deciding.  Everything decided is durable; nothing is given back."""
        self.core.on_wanted = lambda: None
        if self._telling is not None:
            self._telling.cancel()
        for task in (self._ticking, self._refreshing):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        await self.claims.close()
        await self.routes.close()
