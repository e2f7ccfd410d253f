"""The part of a Hub that a single-user server talks to, on a free loopback port."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, Self

from jupyterhub._version import __version__
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler


@dataclass
class FakeHub:
    """Knows some tokens, and counts what it is asked."""

    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    activity: list[dict[str, Any]] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a server has told of its activity."""
    api_url: str = ""

    def add_token(self, token: str, name: str, *scopes: str) -> None:
        """Know *token* as one of the user *name*, who may do *scopes*."""
        self.tokens[token] = {
            "kind": "user",
            "name": name,
            "admin": False,
            "groups": [],
            "scopes": list(scopes),
        }

    async def __aenter__(self) -> Self:
        """Listen."""
        [sockets] = [bind_sockets(0, "127.0.0.1")]
        port = sockets[0].getsockname()[1]
        self.api_url = f"http://127.0.0.1:{port}/hub/api"
        application = Application(
            [
                ("/hub/api", _Version),
                ("/hub/api/user", _User, {"hub": self}),
                ("/hub/api/users/[^/]+/activity", _Activity, {"hub": self}),
            ],
            log_function=lambda handler: None,
        )
        self._server = HTTPServer(application)
        self._server.add_sockets(sockets)
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Stop listening."""
        self._server.stop()
        await self._server.close_all_connections()


class _Handler(RequestHandler):
    def set_default_headers(self) -> None:
        self.set_header("X-JupyterHub-Version", __version__)


class _Version(_Handler):
    def get(self) -> None:
        self.finish({"version": __version__})


class _User(_Handler):
    def initialize(self, hub: FakeHub) -> None:
        self.hub = hub

    def get(self) -> None:
        header = self.request.headers.get("Authorization", "")
        user = self.hub.tokens.get(header.partition(" ")[2])
        if user is None:
            self.send_error(403)
        else:
            self.finish(user)


class _Activity(_Handler):
    def initialize(self, hub: FakeHub) -> None:
        self.hub = hub

    def post(self, *_: str) -> None:
        self.hub.activity.append(json.loads(self.request.body))
        self.hub.heard.set()
        self.finish({})
