"""A small Hub with the answers that the controller needs, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from patience import PATIENCE
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler


PREFIX = "/services/fleet/"
SECRET = "spawner-secret-of-the-test"


@dataclass
class SmallHub:
    """As much of a Hub as the controller ever meets."""

    port: int = 0
    users: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By token."""
    starts: list[str] = field(default_factory=list)
    start_bodies: list[bytes] = field(default_factory=list)
    start_answer: tuple[int, dict[str, Any]] = (202, {})
    route_checks: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    server: HTTPServer | None = None

    @property
    def api(self) -> str:
        """Return where its API is."""
        return f"http://127.0.0.1:{self.port}/hub/api"

    def listen(self) -> None:
        """Begin to answer, at the same port as before."""
        (listener,) = bind_sockets(self.port, address="127.0.0.1")
        self.port = listener.getsockname()[1]
        given = {"hub": self}
        self.server = HTTPServer(
            Application(
                [
                    (r"/hub/api/user", _WhoAmI, given),
                    (r"/hub/api/oauth2/authorize", _Authorize, given),
                    (r"/hub/api/oauth2/token", _Token, given),
                    (r"/hub/api/proxy", _Proxy, given),
                    (r"/hub/api/users/(.*)", _Start, given),
                ],
                log_function=lambda handler: None,
            )
        )
        self.server.add_sockets([listener])

    async def close(self) -> None:
        """Stop answering."""
        if self.server is not None:
            self.server.stop()
            await self.server.close_all_connections()
            self.server = None

    def add_user(
        self,
        name: str,
        *,
        admin: bool = False,
        access: bool = True,
        scopes: Sequence[str] = (),
    ) -> str:
        """Return a token of a user, who holds these *scopes* beside."""
        token = f"hub-token-of-{name}"
        held = ["access:services!service=fleet"] if access else []
        self.users[token] = {
            "kind": "user",
            "name": name,
            "admin": admin,
            "groups": [],
            "scopes": [*held, *scopes],
        }
        return token

    async def wait_for(self, is_so: Callable[[], bool]) -> None:
        """Return once *is_so*."""
        async with asyncio.timeout(PATIENCE):
            while not is_so():
                self.changed.clear()
                await self.changed.wait()

    def note(self) -> None:
        """Wake whoever waits for a change."""
        self.changed.set()


class _HubHandler(RequestHandler):
    def initialize(self, *, hub: SmallHub) -> None:
        self.hub = hub


class _WhoAmI(_HubHandler):
    def get(self) -> None:
        _, _, token = self.request.headers.get("Authorization", "").partition(" ")
        user = self.hub.users.get(token)
        if user is None:
            self.set_status(403)
            self.finish({"message": "forbidden"})
            return
        self.finish(user)


class _Authorize(_HubHandler):
    def get(self) -> None:
        """Let in whoever the test's browser claims to be."""
        token = self.get_cookie("who", "")
        state = self.get_argument("state")
        target = self.get_argument("redirect_uri")
        self.redirect(f"{target}?code={token}&state={state}")


class _Token(_HubHandler):
    def post(self) -> None:
        self.finish({"access_token": self.get_argument("code"), "token_type": "Bearer"})


class _Proxy(_HubHandler):
    def post(self) -> None:
        self.hub.route_checks += 1
        self.hub.note()


class _Start(_HubHandler):
    def post(self, path: str) -> None:
        self.hub.starts.append(self.request.path.removeprefix("/hub/api"))
        self.hub.start_bodies.append(self.request.body)
        status, body = self.hub.start_answer
        self.set_status(status)
        self.finish(body)
        self.hub.note()
