"""A real controller process, with a small real Hub and scripted agents around it."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleet_controller import some_capabilities
from tornado.httpclient import AsyncHTTPClient, HTTPRequest, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketClientConnection, websocket_connect

from fleet_contracts.protocol import (
    PROTOCOL,
    Acknowledge,
    AgentEvent,
    Forget,
    Goodbye,
    Heartbeat,
    Hello,
    Inventory,
    InventoryItem,
    Launch,
    Report,
    Stop,
    ToAgent,
    decode_to_agent,
    encode,
)
from fleet_hub.admission import Ask, Outcome, Park, Update
from fleet_hub.service import supervisor


PREFIX = "/services/fleet/"
SECRET = "spawner-secret-of-the-test"
CATALOG = """\
classes:
  - {name: small, title: Small, cpu: 1, memory: 1G}
  - {name: whole, title: Whole, cpu: 4, memory: 1G}
runtimes:
  - {name: python, title: Python, accelerators: [cpu], driver_refs: {native: secret-ref}}
profiles:
  - {name: jupyter, title: JupyterLab, classes: [small, whole], runtimes: [python]}
"""


def a_free_port() -> int:
    """Return a port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


# ------------------------------------------------------------------------- the Hub
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

    def add_user(self, name: str, *, admin: bool = False, access: bool = True) -> str:
        """Return a token of a user."""
        token = f"hub-token-of-{name}"
        scopes = ["access:services!service=fleet"] if access else []
        self.users[token] = {
            "kind": "user",
            "name": name,
            "admin": admin,
            "groups": [],
            "scopes": scopes,
        }
        return token

    async def wait_for(self, is_so: Callable[[], bool]) -> None:
        """Return once *is_so*."""
        async with asyncio.timeout(10):
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


# --------------------------------------------------------------------- the service
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["fleet_service", "fleet_hub.service.application"])


def _be_the_service(environment: dict[str, str], folder: Path, log: Path) -> None:
    """Become what ``python -m fleet_hub.service`` is, imports apart."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.argv[1:] = []
    os._exit(supervisor.main())


class ServiceProcess:
    """A process that was forked with its imports done: the rest is the real thing."""

    def __init__(self, environment: dict[str, str], folder: Path, log: Path) -> None:
        """Start it."""
        self._process = _FORKS.Process(
            target=_be_the_service, args=(environment, folder, log)
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return its exit status, if it has ended."""
        return self._process.exitcode

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def wait(self, limit_seconds: float = 60) -> int:
        """Return its exit status once it has ended."""
        self._process.join(limit_seconds)
        assert self._process.exitcode is not None, "it has not ended"
        return self._process.exitcode


class CommandProcess(ServiceProcess):
    """The command as the Hub runs it, imports included."""

    def __init__(self, environment: dict[str, str], folder: Path, log: Path) -> None:
        """Start it."""
        with log.open("ab") as out:
            self._command = subprocess.Popen(
                [sys.executable, "-m", "fleet_hub.service"],
                env=environment,
                cwd=folder,
                stdout=out,
                stderr=out,
            )
        self.pid = self._command.pid

    def poll(self) -> int | None:
        """Return its exit status, if it has ended."""
        return self._command.poll()

    def kill(self) -> None:
        """Kill it."""
        self._command.kill()

    def wait(self, limit_seconds: float = 60) -> int:
        """Return its exit status once it has ended."""
        return self._command.wait(limit_seconds)


class Service:
    """The controller as the Hub runs it: a supervisor and its child."""

    def __init__(self, folder: Path, hub: SmallHub, **environment: str) -> None:
        """Keep everything below *folder*."""
        self.folder = folder
        self.port = a_free_port()
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
        return f"http://127.0.0.1:{self.port}{PREFIX}"

    def spawn(self) -> ServiceProcess:
        """Start the process without waiting for it."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "JUPYTERHUB_FLEET_DATA_DIR": str(self.folder / "data"),
            "JUPYTERHUB_FLEET_CATALOG": str(self.catalog),
            "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{self.port}",
            "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
            "JUPYTERHUB_BASE_URL": "/",
            "JUPYTERHUB_API_URL": self.hub.api,
            "JUPYTERHUB_API_TOKEN": "service-token",
            "JUPYTERHUB_CLIENT_ID": "service-fleet",
            "JUPYTERHUB_OAUTH_ACCESS_SCOPES": json.dumps(
                ["access:services", "access:services!service=fleet"]
            ),
        } | self._environment
        self.process = self.make_process(environment, self.folder, self.log)
        return self.process

    async def start(self) -> None:
        """Start, and return once it answers."""
        self.spawn()
        await self.answering()

    async def answering(self) -> None:
        """Return once the service answers."""
        async with asyncio.timeout(40):
            while True:
                assert self.process is not None
                assert self.process.poll() is None, self.log.read_text()
                try:
                    await AsyncHTTPClient().fetch(self.url + "health")
                except OSError:
                    await asyncio.sleep(0.02)
                    continue
                return

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
        async with asyncio.timeout(10):
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
        async with asyncio.timeout(10):
            while True:
                try:
                    if self.child() != child:
                        break
                except IndexError:
                    pass
                await asyncio.sleep(0.005)
        await self.answering()

    async def stop(self) -> int:
        """Ask it to end, and return its exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return await asyncio.to_thread(self.process.wait, 15)

    async def fetch(
        self,
        path: str,
        *,
        method: str = "GET",
        body: Any = None,
        token: str | None = f"Bearer {SECRET}",
        headers: dict[str, str] | None = None,
        limit_seconds: float = 30,
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

    async def enrol(self, name: str = "box", owner: str = "alice") -> str:
        """Return the token of a new machine."""
        answer = await self.json(
            "internal/machines",
            method="POST",
            body={"name": name, "owner": owner, "local": True},
        )
        return str(answer["token"])

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
            await asyncio.to_thread(service.process.wait, 15)
        await hub.close()


# ---------------------------------------------------------------------- the agent
class ScriptedAgent:
    """An agent that speaks the protocol over a real WebSocket, and runs nothing.

    Its ledger outlives its links, as a real agent's does.
    """

    def __init__(self, service: Service, token: str, *, cores: int = 4) -> None:
        """Speak with *token*."""
        self.service = service
        self.token = token
        self.cores = cores
        self.ledger: dict[str, InventoryItem] = {}
        self.outbox: list[Report] = []
        self.launches: list[Launch] = []
        self.heard: list[ToAgent] = []
        self.link: WebSocketClientConnection | None = None
        self.ledger_id = "ledger-1"
        self.boot_id = "boot-1"
        self.news = asyncio.Event()
        self.is_automatic = True
        """It serves what it is told to launch, and ends what it is told to stop."""
        self._reader: asyncio.Task[None] | None = None

    _greeted = False

    async def connect(self, *, protocol: int = PROTOCOL) -> None:
        """Dial, say hello, and tell the ledger and what was not acknowledged.

        Returns once the controller has taken it in, or closed the link.
        """
        self._greeted = False
        url = self.service.url.replace("http", "ws", 1) + "agent"
        request = HTTPRequest(url, headers={"Authorization": f"Bearer {self.token}"})
        self.link = await self.service.dial(request)
        self.service.agents.append(self)
        await self.say(
            Hello(
                protocol=protocol,
                agent_version="1.0",
                boot_id=self.boot_id,
                ledger_id=self.ledger_id,
                drivers=("native",),
                capabilities=some_capabilities(self.cores),
                highest_epoch=max(
                    (launch.epoch for launch in self.launches), default=0
                ),
                inventory_size=len(self.ledger),
            )
        )
        self._reader = asyncio.create_task(self._read(self.link))
        await self.until(lambda: self._greeted or self.link is None)
        if self.link is not None:
            await self.settle()

    async def settle(self) -> None:
        """Return once the controller has taken in everything said so far."""
        assert self.link is not None
        answered = asyncio.Event()
        self.link.on_pong = lambda data: answered.set()  # type: ignore[method-assign]
        self.link.ping(b"settle")
        await asyncio.wait_for(answered.wait(), 10)

    async def greet(self) -> None:
        """Tell the inventory, then the outbox, then a heartbeat: as agents do."""
        await self.say(Inventory(items=tuple(self.ledger.values()), last=True))
        for report in list(self.outbox):
            await self.say(report)
        await self.beat()

    async def beat(self) -> None:
        """Say that it lives."""
        from datetime import UTC, datetime  # noqa: PLC0415

        await self.say(Heartbeat(sent_at=datetime.now(UTC)))

    async def say(self, message: Any) -> None:
        """Send *message*."""
        assert self.link is not None
        await self.link.write_message(encode(message))

    async def _read(self, link: WebSocketClientConnection) -> None:
        while (text := await link.read_message()) is not None:
            message = decode_to_agent(text)
            self.heard.append(message)
            await self._act(message)
            self.news.set()
        self.service.over(link)
        self.link = None
        self.news.set()

    async def _act(self, message: ToAgent) -> None:
        if message.type == "welcome":
            await self.greet()
            self._greeted = True
        elif isinstance(message, Acknowledge):
            self.outbox = [
                report
                for report in self.outbox
                if report.allocation != message.allocation or report.seq > message.seq
            ]
        elif isinstance(message, Forget):
            self.ledger.pop(message.allocation, None)
        elif isinstance(message, Launch):
            self.launches.append(message)
            if self.is_automatic:
                await self.serve(message)
        elif isinstance(message, Stop) and self.is_automatic:
            await self.end(message)

    async def serve(self, launch: Launch) -> None:
        """Take an allocation to a ready server."""
        if launch.allocation in self.ledger:
            return
        await self.report(launch, AgentEvent.ACCEPTED)
        await self.report(launch, AgentEvent.PREPARED)
        await self.report(
            launch, AgentEvent.SERVING, url=f"http://127.0.0.1:9/{launch.allocation}/"
        )

    async def end(self, stop: Stop | Launch) -> None:
        """Say that nothing runs any more."""
        await self.report(stop, AgentEvent.ENDED)

    async def report(
        self, about: Launch | Stop, event: AgentEvent, **more: Any
    ) -> None:
        """Note *event* durably, then report it."""
        from datetime import UTC, datetime  # noqa: PLC0415

        known = self.ledger.get(about.allocation)
        seq = (known.seq if known else 0) + 1
        report = Report(
            allocation=about.allocation,
            epoch=about.epoch,
            seq=seq,
            at=datetime.now(UTC),
            event=event,
            **more,
        )
        if event in {AgentEvent.PROGRESS, AgentEvent.NOTE} and known is not None:
            self.ledger[about.allocation] = known.model_copy(update={"seq": seq})
        else:
            self.ledger[about.allocation] = InventoryItem(
                allocation=about.allocation,
                epoch=about.epoch,
                event=event,
                seq=seq,
                url=more.get("url"),
                explanation=more.get("explanation"),
            )
        self.outbox.append(report)
        if self.link is not None:
            await self.say(report)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Return once *is_so*, judged after each message."""
        async with asyncio.timeout(10):
            while not is_so():
                self.news.clear()
                await self.news.wait()

    async def launched(self, count: int = 1) -> Launch:
        """Return the latest launch once there are *count*."""
        await self.until(lambda: len(self.launches) >= count)
        return self.launches[-1]

    async def dismissed(self) -> Goodbye | None:
        """Return what the controller said before it closed the link."""
        await self.until(lambda: self.link is None)
        return next(
            (item for item in reversed(self.heard) if isinstance(item, Goodbye)), None
        )

    async def gone(self) -> None:
        """Return once the link has closed, from whichever side."""
        await self.until(lambda: self.link is None)

    async def hang_up(self) -> None:
        """Close the link."""
        if self.link is not None:
            self.link.close()
        if self._reader is not None:
            await self._reader
        self.link = None


# ---------------------------------------------------------------------- the Spawner
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
        async with asyncio.timeout(10):
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
