"""The controller in an event loop: cycles when something happened, ticks, claims."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.claiming import Claims
from fleet_hub.controller.core import Core
from fleet_hub.controller.ticking import tick
from fleet_hub.service.routes import RouteChecks


log = structlog.get_logger()

TICK_SECONDS: Final = 0.5
RETRY_SECONDS: Final = 1.0
CATALOG_TICKS: Final = 4
TIDY_TICKS: Final = 60


class Runner:
    """Runs one controller until it is closed."""

    def __init__(
        self, core: Core, *, refresh_catalog: Callable[[], bool] = lambda: False
    ) -> None:
        """Run *core*; nothing happens before ``start``."""
        self.core = core
        self._refresh_catalog = refresh_catalog
        self.claims = Claims(core)
        self.routes = RouteChecks(core.hub)
        self._scheduled = False
        self._ticking: asyncio.Task[None] | None = None

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
        if not self.core.wanted:
            return
        try:
            run_cycle(self.core)
            self.claims.ask_hub()
        except Exception:
            # The next event, or the next tick, tries again: nothing was changed.
            log.exception("admission cycle failed")
            self.core.wanted = True

    async def _tick(self) -> None:
        count = 0
        while True:
            await asyncio.sleep(TICK_SECONDS)
            count += 1
            try:
                if count % CATALOG_TICKS == 0 and self._refresh_catalog():
                    self.core.want_cycle()
                tick(self.core)
                self.claims.ask_hub()
                if count % TIDY_TICKS == 0:
                    self.core.store.tidy()
            except Exception:
                log.exception("tick failed")
                await asyncio.sleep(RETRY_SECONDS)
            if self.core.wanted:
                self._schedule()

    async def close(self) -> None:
        """Stop deciding.  Everything decided is durable; nothing is given back."""
        self.core.on_wanted = lambda: None
        if self._ticking is not None:
            self._ticking.cancel()
            with suppress(asyncio.CancelledError):
                await self._ticking
        await self.claims.close()
        await self.routes.close()
