"""Every endpoint of the service for every role, compared with one table.

A new endpoint fails here until the table says who may use it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from authorisation_table import BODIES, NO_DEEDS, OTHER_PROOF, ROLES, TABLE
from fleet_controller import an_ask
from fleet_service import Service, a_service
from patience import PATIENCE
from scripted_agent import ScriptedAgent
from small_hub import PREFIX
from tornado.web import RequestHandler
from tornado.websocket import WebSocketHandler

from fleet_hub.service.web import routes


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with everybody in it."""
    async with a_service(tmp_path) as running:
        hub = running.hub
        for name in ("alice", "carol", "bob"):
            hub.add_user(name)
        hub.add_user("root", admin=True)
        hub.add_user("eve", access=False)
        hub.add_user("rita", scopes=["custom:fleet:read"])
        hub.add_user("gwen", scopes=["custom:fleet:admin", "custom:fleet:read"])
        hub.add_user("vera")
        hub.users["hub-token-of-vera"]["scopes"].append("access:servers!server=alice/")
        hub.users["token-of-alices-server"] = {
            "kind": "user",
            "name": "alice",
            "admin": False,
            "groups": [],
            "scopes": ["users:activity!user=alice", "access:servers!server=alice/"],
        }
        hub.add_user("culler")
        hub.users["hub-token-of-culler"]["kind"] = "service"
        yield running


class Scene:
    """One machine of carol's, and three servers of alice's on a machine of her own."""

    def __init__(self, service: Service) -> None:
        """Begin with nothing."""
        self.service = service
        self.shown: dict[str, str | None] = {}
        self.names: dict[str, str] = {}

    async def make(self) -> None:
        """Let one server end, one run and one wait."""
        service = self.service
        await service.enrol("spare", "carol")
        old, new = [await service.enrol("box", "carol") for _ in range(2)]
        agent = ScriptedAgent(service, await service.enrol("mine", "alice"))
        await agent.connect()
        ended = await self._runs(3)
        await service.json("internal/servers/1-3/stop?wait=60", method="POST")
        await self._runs(1)
        waits = await AttendedStart(service, an_ask(2, class_name="whole")).open()
        await waits.until("waiting")
        follows = await AttendedStart(service, an_ask(4, class_name="whole")).open()
        await follows.until("waiting")
        status = await service.status("1-2")
        self.names = {
            "WAITING": status["workload"],
            "NEXT": (await service.status("1-4"))["workload"],
            "RUNNING": (await service.status("1-1"))["workload"],
        }
        tokens = [
            launch.spec.environment["JUPYTERHUB_FLEET_TIMELINE_TOKEN"]
            for launch in agent.launches
        ]
        assert ended
        self.shown = {
            "anonymous": None,
            "revoked": "token hub-token-of-nobody",
            "outside": "token hub-token-of-eve",
            "server": "token token-of-alices-server",
            "service": "token hub-token-of-culler",
            "stranger": "token hub-token-of-bob",
            "visitor": "token hub-token-of-vera",
            "user": "token hub-token-of-alice",
            "keeper": "token hub-token-of-carol",
            "reader": "token hub-token-of-rita",
            "governor": "token hub-token-of-gwen",
            "admin": "token hub-token-of-root",
            "spawner": "Bearer spawner-secret-of-the-test",
            "agent": f"Bearer {new}",
            "old-agent": f"Bearer {old}",
            "old-notebook": f"Fleet {tokens[0]}",
            "notebook": f"Fleet {tokens[1]}",
            "view": f"Fleet {status['view_token']}",
        }
        assert self.shown.keys() == ROLES.keys()

    async def _runs(self, server: int) -> bool:
        start = await AttendedStart(
            self.service, an_ask(server, class_name="whole")
        ).open()
        return (await start.ended()).kind.value == "ready"

    async def log_length(self) -> int:
        """Return how many lines the audit log has."""
        told = await self.service.json("internal/audit?limit=1000")
        return len(told["entries"])

    async def answer(self, method: str, path: str, role: str) -> int:
        """Return the status of one request."""
        named = path
        for name, workload in self.names.items():
            named = named.replace(name, workload)
        body = BODIES.get(path)
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        response = await self.service.fetch(
            named,
            method=method,
            body=body,
            token=self.shown[role],
            headers=kind if isinstance(body, bytes) else {},
        )
        assert b"Traceback" not in response.body
        assert b"secret-ref" not in response.body
        return response.code


def expected(method: str, path: str, role: str, code: int) -> int:
    """Return *code*, or what comes before: the proof against other sites' pages."""
    handled = path.startswith(
        ("api/workloads", "api/machines", "api/codes", "machines", "workloads")
    )
    if method == "POST" and role == "anonymous" and handled:
        return 403
    return code


async def test_every_endpoint_for_every_role(service: Service) -> None:
    """What is not meant for a role is refused before anything is done."""
    scene = Scene(service)
    await scene.make()
    wrong = []
    logged: set[str] = set()
    for method, path, codes in TABLE:
        for role in ROLES:
            known = await scene.log_length()
            code = await scene.answer(method, path, role)
            wanted = expected(method, path, role, codes[role])
            if code != wanted:
                wrong.append(f"{method} {path or '/'} as {role}: {code}, not {wanted}")
            if await scene.log_length() > known:
                logged.add(_any_of(path))
                if method == "GET" or code >= 400:
                    wrong.append(
                        f"{method} {path} as {role} is logged, and did nothing"
                    )
    assert wrong == []
    deeds = {
        _any_of(path)
        for method, path, codes in TABLE
        if method != "GET" and not path.startswith(NO_DEEDS)
        if min(codes.values()) < 400
    }
    assert deeds - logged == set()


async def test_every_method_of_every_route_is_in_the_table() -> None:
    """A new endpoint, or a new method of one, has to say who may use it."""

    class _Nothing:
        prefix = PREFIX
        core = registry = transfers = None

    walked = {
        (method, re.sub("WAITING|NEXT|RUNNING", "w1", path.partition("?")[0]))
        for method, path, _ in TABLE
    }
    missing = []
    for route in routes(_Nothing()):  # type: ignore[arg-type]
        pattern, handler = re.compile(route[0] + "$"), route[1]
        if any(pattern.match(PREFIX + path) for path in OTHER_PROOF):
            continue
        assert not issubclass(handler, WebSocketHandler), route[0]
        missing += [
            f"{method} {route[0]}"
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
            if getattr(handler, method.lower()) is not _unused(method)
            and not any(
                known == method and pattern.match(PREFIX + path)
                for known, path in walked
            )
        ]
    assert missing == []


def _any_of(path: str) -> str:
    """Return *path* without the name of what it is about."""
    return re.sub("/(box|spare|mine|WAITING|RUNNING|NEXT)/", "/…/", path)


def _unused(method: str) -> object:
    return getattr(RequestHandler, method.lower())


@pytest.mark.parametrize("path", ["api/enrol", "internal/offers", "machines"])
async def test_a_request_that_is_too_large_is_not_read(
    service: Service, path: str
) -> None:
    """It is refused by its announced length, and everybody else is answered."""
    reader, writer = await asyncio.open_connection(service.host, service.port)
    writer.write(
        f"POST {PREFIX}{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {2 << 20}\r\n"
        "Authorization: token hub-token-of-root\r\n\r\n".encode()
    )
    assert b" 400 " in await asyncio.wait_for(reader.readline(), PATIENCE)
    writer.close()
    await writer.wait_closed()
    assert (await service.fetch("health")).code == 200


async def test_long_words_of_forms_are_refused_or_cut(service: Service) -> None:
    """Names, searches and pages beyond all bounds."""
    token = "token hub-token-of-root"
    for body in (
        b"name=" + b"x" * 300 + b"&owner=alice",
        b"name=box&owner=" + b"x" * 300,
    ):
        response = await service.fetch(
            "machines", method="POST", body=body, token=token
        )
        assert response.code in {400, 409}
    for path in (
        f"machines?q={'x' * 3000}",
        f"line?q={'x' * 3000}&sort={'x' * 3000}",
        f"?q={'x:' * 1500}&from={10**15}",
        "machines?from=-5",
        f"machines?from={10**15}",
        f"audit?target={'x' * 3000}&before=-1",
        f"line?from={10**15}",
        f"holds?from={10**15}",
        f"decisions?from={10**15}&q={'x' * 3000}",
        f"profiles?user={'x' * 3000}",
    ):
        response = await service.fetch(path, token=token)
        assert response.code == 200, path
        assert len(response.body) < 100_000
