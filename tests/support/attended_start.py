"""A start of the Hub, as the Spawner attends it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from patience import PATIENCE
from small_hub import SECRET
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection

from fleet_hub.admission import Ask, Outcome, Park, Update


if TYPE_CHECKING:
    from fleet_service import Service


class AttendedStart:
    """A start of the Hub, as the Spawner attends it."""

    def __init__(self, service: Service, request: Ask) -> None:
        """Ask *request*."""
        self.service = service
        self.request = request
        self.updates: list[Update] = []
        self.outcome: Outcome | None = None
        self._link: WebSocketClientConnection | None = None

    async def open(self) -> AttendedStart:
        """Dial and ask."""
        url = self.service.url.replace("http", "ws", 1) + "internal/attend"
        request = HTTPRequest(url, headers={"Authorization": f"Bearer {SECRET}"})
        self._link = await self.service.dial(request)
        await self._link.write_message(self.request.model_dump_json(by_alias=True))
        return self

    async def hear(self) -> Update | Outcome | None:
        """Return the next message; None: the link has closed."""
        assert self._link is not None
        async with asyncio.timeout(PATIENCE):
            text = await self._link.read_message()
        if text is None:
            self.service.over(self._link)
            return None
        if json.loads(text)["type"] == "update":
            update = Update.model_validate_json(text)
            self.updates.append(update)
            return update
        self.outcome = Outcome.model_validate_json(text)
        return self.outcome

    async def until(self, kind: str) -> Update:
        """Return the first update of *kind* from here on."""
        while True:
            message = await self.hear()
            assert isinstance(message, Update), message
            if message.event.kind.value == kind:
                return message

    async def ended(self) -> Outcome:
        """Return the outcome."""
        while self.outcome is None:
            message = await self.hear()
            assert message is not None, "the link closed without an outcome"
        return self.outcome

    async def park(self) -> Outcome:
        """Let go, and return the controller's word."""
        assert self._link is not None
        await self._link.write_message(Park().model_dump_json())
        return await self.ended()

    def close(self) -> None:
        """Hang up, as a Hub that dies does."""
        if self._link is not None:
            self._link.close()

    def kinds(self) -> list[str]:
        """Return what has been told, without repetitions."""
        seen: dict[int, str] = {}
        for update in self.updates:
            seen[update.event.seq] = update.event.kind.value
        return [seen[seq] for seq in sorted(seen)]
