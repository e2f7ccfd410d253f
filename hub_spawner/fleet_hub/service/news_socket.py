"""The link over which an open page hears that something has changed; see ``news``."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from tornado.websocket import WebSocketClosedError, WebSocketHandler
from typing_extensions import override

from fleet_hub.service.news import News
from fleet_hub.service.people import PersonHandler


GATHER_SECONDS: Final = 0.25
"""One decision is often followed by more: they are told as one."""
LASTS_SECONDS: Final = 300.0
"""Then the page comes again, and the Hub is asked anew who it is."""


class NewsSocket(PersonHandler, WebSocketHandler):
    """The link of one open page."""

    _next: asyncio.TimerHandle | None = None
    _end: asyncio.TimerHandle | None = None

    @property
    def _news(self) -> News:
        return self.context.runner.news

    @override
    def open(self, *args: str, **kwargs: str) -> None:
        loop = asyncio.get_running_loop()
        self._end = loop.call_later(LASTS_SECONDS, self.close)
        self._news.join(self._hear)
        self._tell()

    @override
    def on_message(self, message: str | bytes) -> None:
        """Nothing is to be said here."""
        self.close()

    def _hear(self) -> None:
        if self._next is None:
            loop = asyncio.get_running_loop()
            self._next = loop.call_later(GATHER_SECONDS, self._tell)

    def _tell(self) -> None:
        self._next = None
        with suppress(WebSocketClosedError):
            self.write_message(self._news.number)

    @override
    def on_close(self) -> None:
        self._news.leave(self._hear)
        for timer in (self._next, self._end):
            if timer is not None:
                timer.cancel()
