"""A real jupyter_server with the extension, and a real controller peer beside it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from patience import PATIENCE, free_port
from tornado import web
from tornado.httpserver import HTTPServer


pytest_plugins = ["pytest_jupyter.jupyter_server"]

TOKEN = "timeline-token-of-ada"


def an_event(seq: int, kind: str = "asked", **more: Any) -> dict[str, Any]:
    """Return a timeline event as the controller sends it."""
    return {
        "seq": seq,
        "generation": 1,
        "at": f"2026-11-29T10:00:{seq:02d}Z",
        "kind": kind,
        "state": "queued",
        **more,
    }


def a_timeline(*events: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a timeline document as the controller sends it."""
    return {
        "schema": "jupyterhub-fleet/timeline/v1",
        "as_of": "2026-11-29T10:01:00Z",
        "workload": "w1",
        "generation": 1,
        "user": "ada",
        "server": "",
        "state": "ready",
        "phase": "ready",
        "headline": "Ready",
        "events": list(events or (an_event(1),)),
        **more,
    }


class ControllerPeer:
    """Speaks the controller's timeline API on a real socket; tests set what it says."""

    def __init__(self) -> None:
        """Know one timeline; ``say`` changes it and wakes who waits."""
        self.document: dict[str, Any] = a_timeline()
        self.status = 200
        self.body: bytes | None = None
        self.requests: list[tuple[str | None, dict[str, str]]] = []
        self.changed = asyncio.Event()
        self.polled = asyncio.Event()
        self._server: HTTPServer | None = None
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}/services/fleet/"

    def listen(self) -> None:
        """Start to answer, always at the same address."""
        self._server = HTTPServer(self._application())
        self._server.listen(self._port, "127.0.0.1")

    async def go_away(self) -> None:
        """Stop answering, as a controller that was killed."""
        assert self._server is not None
        self._server.stop()
        self.changed.set()
        await self._server.close_all_connections()

    def say(self, document: dict[str, Any]) -> None:
        """Change the timeline, and wake the long polls."""
        self.document = document
        self.changed.set()

    def _application(self) -> web.Application:
        peer = self

        class Timeline(web.RequestHandler):
            async def get(self) -> None:
                arguments = {
                    name: self.get_query_argument(name)
                    for name in self.request.arguments
                }
                peer.requests.append(
                    (self.request.headers.get("Authorization"), arguments)
                )
                if "wait" in arguments and peer.status == 200:
                    peer.changed.clear()
                    peer.polled.set()
                    await peer.changed.wait()
                self.set_status(peer.status)
                # Like the controller, which tags what is told and not when.
                told = {**peer.document, "as_of": None}
                self.set_header("Etag", f'"{hash(json.dumps(told))}"')
                if peer.status == 200 and self.check_etag_header():
                    self.set_status(304)
                    self.finish()
                    return
                self.finish(peer.body or json.dumps(peer.document))

            def compute_etag(self) -> None:
                return None

        return web.Application([(r"/services/fleet/api/timeline", Timeline)])


@pytest.fixture
def controller(jp_asyncio_loop: asyncio.AbstractEventLoop) -> Any:
    """A controller that listens on a free port of this machine."""
    peer = ControllerPeer()

    async def start() -> None:
        peer.listen()

    jp_asyncio_loop.run_until_complete(start())
    yield peer
    jp_asyncio_loop.run_until_complete(peer.go_away())


@pytest.fixture
def started_by_hub(
    controller: ControllerPeer, jp_environ: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment that the Spawner and the controller give a notebook server."""
    monkeypatch.setenv("JUPYTERHUB_FLEET_URL", controller.url)
    monkeypatch.setenv("JUPYTERHUB_FLEET_TIMELINE_TOKEN", TOKEN)
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    monkeypatch.setenv("JUPYTERHUB_SERVER_NAME", "")


@pytest.fixture
def jp_server_config() -> dict[str, Any]:
    """Every handler must say who may use it, and a broken extension is an error."""
    return {
        "ServerApp": {
            # The terminals' own handler does not say who may use it.
            "jpserver_extensions": {
                "fleet_lab": True,
                "jupyter_server_terminals": False,
            },
            "allow_unauthenticated_access": False,
            "reraise_server_extension_failures": True,
        }
    }


@pytest.fixture
def lab(started_by_hub: None, jp_serverapp: Any) -> Any:
    """A notebook server as the fleet starts it, with its timeline at the peer."""
    return jp_serverapp


@pytest.fixture
def timeline(jp_fetch: Any) -> Callable[..., Any]:
    """Ask the extension as a panel does; returns the response."""

    async def ask(etag: str | None = None, **query: str) -> Any:
        headers = {} if etag is None else {"If-None-Match": etag}
        return await jp_fetch(
            "fleet/api/timeline",
            params=query,
            headers=headers,
            raise_error=False,
            request_timeout=PATIENCE,
        )

    return ask
