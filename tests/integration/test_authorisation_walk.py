"""Every endpoint of the service for every role, compared with one table.

A new endpoint fails here until the table says who may use it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_service import Service, a_service
from patience import PATIENCE
from scripted_agent import ScriptedAgent
from small_hub import PREFIX
from tornado.web import RequestHandler
from tornado.websocket import WebSocketHandler

from fleet_hub.service.web import routes


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

ROLES = {
    "anonymous": "shows nothing",
    "revoked": "a token that the Hub does not know any more",
    "outside": "a Hub user without access to the service",
    "server": "the token of alice's own server, which her kernels can read",
    "service": "another service of the Hub",
    "stranger": "a user who has nothing to do with it",
    "visitor": "a user with whom alice shared her server",
    "user": "alice, whose workload it is",
    "keeper": "carol, who owns the machine",
    "reader": "rita, whom a role of the Hub lets see all of the fleet",
    "governor": "gwen, whom a role of the Hub lets administer the fleet",
    "admin": "an admin of the Hub",
    "spawner": "the Hub's own process",
    "agent": "the machine's agent",
    "old-agent": "an agent whose token was rotated",
    "notebook": "the timeline token of alice's running server",
    "old-notebook": "the timeline token of a server of alice's that has ended",
    "view": "the token with which the Hub's page reads alice's waiting workload",
}
PERSONS = ("stranger", "visitor", "user", "keeper", "reader", "governor", "admin")
FORBIDDEN = ("outside", "server", "service")


def everybody(code: int) -> dict[str, int]:
    """Return the same answer for all."""
    return dict.fromkeys(ROLES, code)


def persons(default: int = 200, **others: int) -> dict[str, int]:
    """Return the answers of what is for people."""
    people = dict.fromkeys(PERSONS, default) | others
    return everybody(401) | dict.fromkeys(FORBIDDEN, 403) | people


def page(default: int = 200, **others: int) -> dict[str, int]:
    """Return the answers of a page: whom nobody knows is led to the login."""
    led = {role: 302 if code == 401 else code for role, code in persons().items()}
    return led | dict.fromkeys(PERSONS, default) | others


def only(role: str, code: int = 200, other: int = 401) -> dict[str, int]:
    """Return the answers of what is for one role that is no person."""
    return everybody(other) | {role: code}


READERS = {"stranger": 403, "visitor": 403, "user": 403, "keeper": 403}
ADMINS = READERS | {"reader": 403}
WORKLOAD = {"stranger": 404, "visitor": 404, "keeper": 404}
MACHINE = {"stranger": 404, "visitor": 404, "user": 404}
DEED_IN_LINE = WORKLOAD | {"reader": 403}
DEED = MACHINE | {"reader": 403}
TABLE: list[tuple[str, str, dict[str, int]]] = [
    # for machines' agents, each for what it was told of alone
    ("GET", "agent/files/a/1/send", only("agent", 403)),
    ("GET", "agent/files/a/1/receive", only("agent", 403)),
    # for everybody
    ("GET", "health", everybody(200)),
    ("GET", "static/fleet.css", everybody(200)),
    ("GET", "assets/timeline.js", everybody(200)),
    ("GET", "nothing/here", everybody(404)),
    # guarded as the Hub guards its own: here nobody may
    ("GET", "metrics", everybody(403)),
    # for the Hub's own process
    ("GET", "internal/servers/1-2", only("spawner")),
    ("GET", "internal/servers/1-2/timeline", only("spawner")),
    ("POST", "internal/servers/9-9/leave", only("spawner")),
    ("POST", "internal/servers/9-9/stop", only("spawner")),
    ("POST", "internal/servers/9-9/opened", only("spawner")),
    ("DELETE", "internal/servers/9-9", only("spawner")),
    ("POST", "internal/offers", only("spawner")),
    ("POST", "internal/validate", only("spawner")),
    ("GET", "internal/machines", only("spawner")),
    ("POST", "internal/machines", only("spawner", 201)),
    ("POST", "internal/codes", only("spawner", 201)),
    ("POST", "internal/machines/box/redetect", only("spawner")),
    ("POST", "internal/machines/mine/redetect", only("spawner")),
    ("POST", "internal/machines/nobox/redetect", only("spawner", 404)),
    ("POST", "internal/machines/box/drain", only("spawner")),
    ("POST", "internal/machines/box/resume", only("spawner")),
    ("POST", "internal/machines/spare/rotate", only("spawner")),
    ("POST", "internal/machines/spare/revoke", only("spawner")),
    ("POST", "internal/machines/spare/lost", only("spawner")),
    ("POST", "internal/machines/spare/audience", only("spawner")),
    ("POST", "internal/machines/spare/lending", only("spawner")),
    ("POST", "internal/machines/spare/members", only("spawner")),
    ("GET", "internal/audit", only("spawner")),
    ("GET", "internal/explain?workload=WAITING", only("spawner")),
    ("GET", "internal/queue", only("spawner")),
    ("GET", "internal/catalog", only("spawner")),
    ("GET", "internal/usage", only("spawner")),
    ("GET", "internal/export", only("spawner")),
    # for tokens of one workload
    ("GET", "api/timeline", only("notebook") | {"view": 200}),
    # for whoever has a code, which nobody here has
    ("POST", "api/enrol", everybody(403)),
    # for people
    ("GET", "api/profiles", persons()),
    ("GET", "api/explain?profile=jupyter", persons()),
    (
        "GET",
        "api/explain?profile=jupyter&user=alice",
        persons(**READERS | {"user": 200}),
    ),
    ("GET", "api/explain?profile=jupyter&group=bio", persons(**READERS)),
    ("GET", "api/explain?workload=WAITING", persons(**WORKLOAD)),
    ("GET", "api/workloads/WAITING/explain", persons(**WORKLOAD)),
    ("GET", "api/workloads/WAITING/timeline", persons(**WORKLOAD)),
    ("GET", "api/workloads/w000/timeline", persons(404)),
    ("GET", "api/usage", persons()),
    ("GET", "api/machines", persons(**READERS)),
    ("GET", "api/queue", persons(**READERS)),
    ("GET", "api/catalog", persons(**READERS)),
    ("GET", "api/export", persons(**READERS)),
    ("POST", "api/machines/box/redetect", persons(**DEED)),
    ("POST", "api/machines/mine/redetect", persons(**DEED_IN_LINE)),
    ("POST", "api/machines/nobox/redetect", persons(404)),
    ("POST", "api/machines/box/drain", persons(**DEED)),
    ("POST", "api/machines/box/resume", persons(**DEED | {"keeper": 409})),
    ("POST", "api/machines/spare/lending", persons(**DEED)),
    ("POST", "api/machines/spare/members", persons(**DEED)),
    ("POST", "api/machines/spare/rotate", persons(**DEED)),
    ("POST", "api/machines/spare/revoke", persons(**DEED)),
    ("POST", "api/machines/spare/audience", persons(**ADMINS)),
    ("POST", "api/machines/spare/lost", persons(**ADMINS)),
    ("POST", "api/codes", persons(201, **ADMINS)),
    ("GET", "api/audit", persons(**READERS)),
    # pages
    ("GET", "", page()),
    ("GET", "?format=csv", page()),
    ("GET", "workloads/WAITING", page(**WORKLOAD)),
    ("GET", "workloads/WAITING/why", page(**WORKLOAD)),
    ("GET", "why?profile=jupyter", page()),
    ("GET", "why?profile=no-such", page(404)),
    ("GET", "catalog", page(**READERS)),
    ("GET", "machines", page()),
    ("GET", "machines?format=csv", page()),
    ("GET", "machines/box", page(**MACHINE)),
    ("GET", "machines/nobox", page(404)),
    ("GET", "usage", page()),
    ("GET", "line", page(**READERS)),
    ("GET", "line?format=csv", page(**READERS)),
    ("GET", "decisions", page(**READERS)),
    ("GET", "decisions?format=json", page(**READERS)),
    ("GET", "holds", page(**READERS)),
    ("GET", "holds?format=json", page(**READERS)),
    ("GET", "profiles", page(**READERS)),
    ("GET", "audit", page(**READERS)),
    ("GET", "audit?format=csv", page(**READERS)),
    # deeds of the pages
    ("POST", "machines", persons(**ADMINS)),
    ("POST", "machines/box/redetect", persons(303, **DEED)),
    ("POST", "machines/mine/redetect", persons(303, **DEED_IN_LINE)),
    ("POST", "machines/box/drain", persons(303, **DEED)),
    # The keeper's turn is before the admin's, who drains it for the keeper as well.
    ("POST", "machines/box/resume", persons(303, **DEED | {"keeper": 409})),
    ("POST", "machines/spare/lending", persons(303, **DEED)),
    ("POST", "machines/spare/members", persons(303, **DEED)),
    ("POST", "machines/spare/audience", persons(303, **DEED | {"keeper": 403})),
    ("POST", "machines/spare/lost", persons(303, **DEED | {"keeper": 403})),
    ("POST", "machines/spare/rotate", persons(200, **DEED)),
    ("POST", "machines/spare/revoke", persons(303, **DEED)),
    # a WebSocket, which nobody asks for here; see ``test_live_pages``
    ("GET", "news", persons(400)),
    # Last, because for those who may they end the workload.
    ("POST", "workloads/RUNNING/leave", persons(409, **DEED_IN_LINE)),
    ("POST", "workloads/WAITING/move", persons(303, **ADMINS)),
    ("POST", "workloads/RUNNING/move", persons(409, **ADMINS)),
    ("POST", "api/workloads/WAITING/move", persons(**ADMINS)),
    ("POST", "api/workloads/RUNNING/move", persons(409, **ADMINS)),
    ("POST", "internal/workloads/WAITING/move", only("spawner")),
    ("POST", "internal/workloads/RUNNING/move", only("spawner", 409)),
    # Nobody holds anything by that name, which those who may are told.
    ("POST", "workloads/WAITING/ask", persons(409, **DEED_IN_LINE)),
    ("POST", "api/workloads/WAITING/ask", persons(409, **DEED_IN_LINE)),
    ("POST", "workloads/WAITING/leave", persons(303, **DEED_IN_LINE)),
    ("POST", "api/workloads/NEXT/leave", persons(**DEED_IN_LINE)),
]
BODIES: dict[str, Any] = {
    "internal/codes": {"name": "new", "owner": "alice"},
    "internal/servers/9-9/opened": {"opened": False},
    "internal/machines": {"name": "other", "owner": "alice"},
    "internal/offers": {"principal": a_principal().model_dump()},
    "internal/validate": {"principal": a_principal().model_dump(), "options": {}},
    "internal/machines/spare/audience": {"choice": "member"},
    "internal/machines/spare/lending": {"choice": "member"},
    "internal/machines/spare/members": {"choice": "bob,@bio"},
    "machines/spare/members": b"choice=bob",
    "api/machines/spare/audience": {"choice": "member"},
    "api/machines/spare/lending": {"choice": "member"},
    "api/machines/spare/members": {"choice": "bob,@bio"},
    "api/codes": {"name": "another", "owner": "alice"},
    "api/workloads/WAITING/move": {"place": "last", "why": "a course"},
    "api/workloads/RUNNING/move": {"place": "first"},
    "internal/workloads/WAITING/move": {"place": "usual", "by": "ops"},
    "internal/workloads/RUNNING/move": {"place": "usual"},
    "workloads/WAITING/ask": b"holder=nobody",
    "api/workloads/WAITING/ask": {"holder": "nobody"},
    "workloads/WAITING/move": b"place=first&why=a+course",
    "workloads/RUNNING/move": b"place=first",
    "machines/spare/audience": b"choice=member",
    "machines/spare/lending": b"choice=member",
    "machines": b"name=new&owner=alice",
    "api/enrol": {"code": "enrol-that-was-never-given"},
}
OTHER_PROOF = {
    *("agent", "internal/attend", "oauth_callback", "news"),
    *("agent/files/a/1/send", "agent/files/a/1/receive"),
}
"""WebSockets with secrets of their own, and the end of a login; see their tests."""
NO_DEEDS = ("internal/servers/", "internal/offers", "internal/validate")
"""What JupyterHub asks for a user is told in that user's timeline."""


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
