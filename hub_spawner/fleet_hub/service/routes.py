"""Having the Hub route a server that it has just found again.

After its own restart the Hub adds the routes of found servers only when the last of
them has been checked, or five minutes later.
"""

from __future__ import annotations

import asyncio
from typing import Final

from fleet_hub.controller.ports import HubApi


DELAYS_SECONDS: Final = (0.5, 2.0, 5.0, 15.0)
"""When the Hub is asked: it needs a moment to see the server for itself."""


class RouteChecks:
    """Asks the Hub a few times after it was told of a running server."""

    def __init__(self, hub: HubApi) -> None:
        """Ask *hub*."""
        self._hub = hub
        self._asked_again = False
        self._task: asyncio.Task[None] | None = None

    def expect(self) -> None:
        """The Hub has just been told where a server is; calls at once are joined."""
        self._asked_again = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._asked_again:
            self._asked_again = False
            for delay in DELAYS_SECONDS:
                await asyncio.sleep(delay)
                await self._hub.check_routes()

    async def close(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
