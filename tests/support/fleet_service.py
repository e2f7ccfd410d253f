"""A real controller process, with a small real Hub and scripted agents around it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from patience import PATIENCE, free_port, until_so
from scripted_agent import ScriptedAgent
from service_process import ServiceProcess
from small_hub import PREFIX, SECRET, SmallHub
from tornado.httpclient import AsyncHTTPClient, HTTPRequest, HTTPResponse
from tornado.websocket import WebSocketClientConnection, websocket_connect


CATALOG = """\
classes:
  - {name: small, title: Small, cpu: 1, memory: 1G}
  - {name: whole, title: Whole, cpu: 4, memory: 1G}
runtimes:
  - {name: python, title: Python, accelerators: [cpu], driver_refs: {native: secret-ref}}
profiles:
  - {name: jupyter, title: JupyterLab, classes: [small, whole], runtimes: [python]}
"""


class Service:
    """The controller as the Hub runs it: a supervisor and its child."""

    def __init__(self, folder: Path, hub: SmallHub, **environment: str) -> None:
        """Keep everything below *folder*."""
        self.folder = folder
        self.port = free_port()
        self.host = "127.0.0.1"
        self.arguments: list[str] = []
        self.hub = hub
        self._environment = environment
        self.process: ServiceProcess | None = None
        self.make_process = ServiceProcess
        self.links: list[WebSocketClientConnection] = []
        self.agents: list[ScriptedAgent] = []
        self.log = folder / "service.log"
        (folder / "data" / "controller").mkdir(parents=True, exist_ok=True)
        secret = folder / "data" / "controller" / "spawner.secret"
        secret.write_text(SECRET)
        secret.chmod(0o600)
        self.catalog = folder / "catalog.yaml"
        self.catalog.write_text(CATALOG)

    @property
    def store(self) -> Path:
        """The file that holds the truth."""
        return self.folder / "data" / "controller" / "store.sqlite"

    @property
    def url(self) -> str:
        """Where the service is."""
        return f"http://{self.host}:{self.port}{PREFIX}"

    def spawn(self) -> ServiceProcess:
        """Start the process without waiting for it."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "JUPYTERHUB_FLEET_DATA_DIR": str(self.folder / "data"),
            "JUPYTERHUB_FLEET_CATALOG": str(self.catalog),
            "JUPYTERHUB_SERVICE_URL": f"http://{self.host}:{self.port}",
            "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
            "JUPYTERHUB_BASE_URL": "/",
            "JUPYTERHUB_API_URL": self.hub.api,
            "JUPYTERHUB_API_TOKEN": "service-token",
            "JUPYTERHUB_CLIENT_ID": "service-fleet",
            "JUPYTERHUB_OAUTH_ACCESS_SCOPES": json.dumps(
                ["access:services", "access:services!service=fleet"]
            ),
        } | self._environment
        self.process = self.make_process(
            environment, self.folder, self.log, self.arguments
        )
        return self.process

    async def start(self) -> None:
        """Start, and return once it answers."""
        self.spawn()
        await self.answering()

    async def answering(self) -> None:
        """Return once the service answers."""
        await until_so(self._answers, "the service is up")

    async def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        with suppress(OSError):
            await AsyncHTTPClient().fetch(self.url + "health")
            return True
        return False

    async def dial(self, request: HTTPRequest) -> WebSocketClientConnection:
        """Open a WebSocket that is closed with the service at the latest."""
        link = await websocket_connect(request)
        self.links.append(link)
        return link

    async def close_links(self) -> None:
        """Close every WebSocket, and hear each out."""
        for agent in self.agents:
            await agent.hang_up()
        for link in self.links:
            link.close()
        for link in list(self.links):
            await self.heard_out(link)

    async def heard_out(self, link: WebSocketClientConnection) -> None:
        """Return once *link* has said its last word."""
        async with asyncio.timeout(PATIENCE):
            while link in self.links and await link.read_message() is not None:
                pass
        self.over(link)

    def over(self, link: WebSocketClientConnection) -> None:
        """Note that *link* has said its last word."""
        link.close()
        if link in self.links:
            self.links.remove(link)

    def child(self) -> int:
        """Return the process id of the controller itself."""
        assert self.process is not None
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0])

    async def kill_child(self) -> None:
        """Kill the controller, and return once its successor answers."""
        child = self.child()
        os.kill(child, signal.SIGKILL)
        await until_so(lambda: self._has_other_child(child), "its successor is there")
        await self.answering()

    def _has_other_child(self, child: int) -> bool:
        with suppress(IndexError):
            return self.child() != child
        return False

    async def stop(self) -> int:
        """Ask it to end, and return its exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return await asyncio.to_thread(self.process.wait, PATIENCE)

    async def fetch(
        self,
        path: str,
        *,
        method: str = "GET",
        body: Any = None,
        token: str | None = f"Bearer {SECRET}",
        headers: dict[str, str] | None = None,
        limit_seconds: float = PATIENCE,
    ) -> HTTPResponse:
        """Ask the service; an error status is an answer too."""
        content = None
        if method in {"POST", "PUT"}:
            content = body if isinstance(body, bytes) else json.dumps(body or {})
        request = HTTPRequest(
            self.url + path,
            method=method,
            body=content,
            headers=({"Authorization": token} if token else {}) | (headers or {}),
            follow_redirects=False,
            request_timeout=limit_seconds,
        )
        return await AsyncHTTPClient().fetch(request, raise_error=False)

    async def json(self, path: str, **options: Any) -> Any:
        """Ask the service for JSON, and fail on anything but success."""
        response = await self.fetch(path, **options)
        assert response.code < 300, (response.code, response.body)
        return json.loads(response.body)

    def edit_catalog(self, text: str) -> None:
        """Write another catalog in one step: nobody reads half of it."""
        draft = self.catalog.with_name(".draft.yaml")
        draft.write_text(text)
        draft.replace(self.catalog)

    async def offers_from(self, catalog: str, expected: str) -> None:
        """Write another catalog, and return once *expected* is offered to alice."""
        self.edit_catalog(catalog)

        async def offered() -> bool:
            token = "token hub-token-of-alice"
            answer = await self.fetch("api/profiles", token=token)
            return expected in answer.body.decode()

        await until_so(offered, f"{expected} is offered")

    async def enrol(self, name: str = "box", owner: str = "alice") -> str:
        """Return the token of a new machine."""
        answer = await self.json(
            "internal/machines",
            method="POST",
            body={"name": name, "owner": owner, "local": True},
        )
        return str(answer["token"])

    async def offline(self, name: str) -> None:
        """Return once the controller knows that a machine has hung up."""

        async def away() -> bool:
            machines = (await self.json("internal/machines"))["machines"]
            return not any(one["name"] == name and one["online"] for one in machines)

        await until_so(away, f"{name} is known to be away")

    async def status(self, key: str = "1-1", query: str = "") -> dict[str, Any]:
        """Return a server's status."""
        answer: dict[str, Any] = await self.json(f"internal/servers/{key}{query}")
        return answer


@asynccontextmanager
async def a_service(folder: Path, **environment: str) -> AsyncIterator[Service]:
    """Run a service with its Hub; both are gone afterwards."""
    hub = SmallHub()
    hub.listen()
    service = Service(folder, hub, **environment)
    try:
        await service.start()
        yield service
    finally:
        await service.close_links()
        if service.process is not None and service.process.poll() is None:
            service.process.kill()
            await asyncio.to_thread(service.process.wait, PATIENCE)
        await hub.close()
