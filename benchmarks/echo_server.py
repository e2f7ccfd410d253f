"""The least that holds as many WebSockets: what comes is sent back, and no more."""

from __future__ import annotations

import asyncio
import sys

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application
from tornado.websocket import WebSocketHandler
from typing_extensions import override

from links import PREFIX, raise_open_files_limit


class Echo(WebSocketHandler):
    """One link."""

    @override
    def on_message(self, message: str | bytes) -> None:
        self.write_message(message)


async def main() -> None:
    """Serve on the port that the first argument names, until killed."""
    raise_open_files_limit()
    server = HTTPServer(Application([(rf"{PREFIX}agent", Echo)]))
    server.add_sockets(bind_sockets(int(sys.argv[1]), address="127.0.0.1"))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
