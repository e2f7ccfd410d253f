"""Who may use which endpoint of the service, and what everybody else is answered."""

from __future__ import annotations

from typing import Any

from fleet_builders import a_principal


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
