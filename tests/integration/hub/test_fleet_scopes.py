"""Roles of a real Hub that let somebody see the fleet, or administer it.

Real Hub, proxy, controller and agent: what the Hub says of a log-in and of a token.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from fleet import Fleet, wait_until
from fleet_parts import NEEDS_HUB, PATIENCE
from shared_fleet import as_found


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

MORE = """
c.JupyterHub.load_groups = {
    "support": {"users": ["rita"]},
    "leaving": {"users": ["remo"]},
}
c.JupyterHub.load_roles += [
    {"name": "fleet-readers", "scopes": ["custom:fleet:read"],
     "groups": ["support", "leaving"]},
    {"name": "fleet-admins", "scopes": ["custom:fleet:admin"], "users": ["gwen"]},
]
c.FleetService.identity_seconds = 1
"""
ACCESS = "access:services!service=fleet"
ONLY_LOOKS = "You may see all of the fleet, and act on what is yours alone"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Return a fleet with ada's machine, on which nobody runs anything."""
    folder = tmp_path_factory.mktemp("fleet")
    with Fleet(folder=folder, more_config=MORE) as fleet:
        fleet.add_machine("box", owner="ada")
        yield fleet


@pytest.fixture
def running(shared: Fleet) -> Iterator[Fleet]:
    """Return that fleet, as each test finds it."""
    with as_found(shared) as fleet:
        yield fleet


def ask(
    fleet: Fleet, path: str, token: str, *, method: str = "GET", body: Any = None
) -> requests.Response:
    """Ask the service through the Hub's proxy."""
    return requests.request(
        method,
        f"{fleet.url}/services/fleet/{path}",
        headers={"Authorization": f"token {token}"},
        json=body,
        timeout=PATIENCE,
    )


def narrow(fleet: Fleet, user: str, *scopes: str) -> str:
    """Return a token of *user* with these scopes alone."""
    answer = fleet.api(
        "POST", f"users/{user}/tokens", json={"scopes": [ACCESS, *scopes]}, user=user
    )
    answer.raise_for_status()
    return str(answer.json()["token"])


def page(fleet: Fleet, session: requests.Session, path: str) -> requests.Response:
    """Open one of the service's pages; the Hub's log-in is followed."""
    return session.get(f"{fleet.url}/services/fleet/{path}", timeout=PATIENCE)


def press(
    fleet: Fleet, session: requests.Session, path: str, **values: str
) -> requests.Response:
    """Do what a button of the line or of a machine does."""
    text = page(fleet, session, "line").text
    found = re.search(r'data-xsrf="([^"]+)"', text)
    assert found, text
    return session.post(
        f"{fleet.url}/services/fleet/{path}",
        data={**values, "_xsrf": found[1]},
        timeout=PATIENCE,
    )


def log(fleet: Fleet) -> list[tuple[str, str, str]]:
    """Return who did what as what, oldest first."""
    entries = fleet.controller("GET", "audit?limit=1000")["entries"]
    return [(each["actor"], each["action"], each["role"]) for each in entries[::-1]]


def test_by_log_in_each_sees_and_does_what_their_role_says(running: Fleet) -> None:
    """A group's role lets see, a user's lets act; others get what they always got."""
    sessions = {name: running.log_in(name) for name in ("rita", "gwen", "bob", "admin")}
    for name, wanted in (("rita", 200), ("gwen", 200), ("admin", 200), ("bob", 403)):
        for path in ("line", "decisions", "holds", "audit", "profiles", "catalog"):
            assert page(running, sessions[name], path).status_code == wanted, (
                name,
                path,
            )
    refused = page(running, sessions["bob"], "line").text
    assert "This is for admins" in refused
    assert "log out of JupyterHub and in again" in refused
    assert "box" in page(running, sessions["rita"], "machines").text
    assert page(running, sessions["bob"], "machines/box").status_code == 404
    answer = press(running, sessions["rita"], "machines/box/drain")
    assert answer.status_code == 403
    assert ONLY_LOOKS in answer.text
    before = log(running)
    answer = press(running, sessions["gwen"], "machines/box/drain", why="a move")
    assert answer.status_code == 200
    answer = press(running, sessions["admin"], "machines/box/resume")
    assert answer.status_code == 200
    assert log(running)[len(before) :] == [
        ("gwen", "drained", "admin"),
        ("admin", "resumed", "admin"),
    ]


def test_by_token_each_does_what_the_token_says(running: Fleet) -> None:
    """A token with all that a person may do, and one that was made for less."""
    rita, gwen, bob = (running.token_of(name) for name in ("rita", "gwen", "bob"))
    assert ask(running, "api/queue", bob).status_code == 403
    assert ask(running, "api/queue", rita).status_code == 200
    assert ask(running, "api/queue", narrow(running, "rita")).status_code == 403
    only_reads = narrow(running, "gwen", "custom:fleet:read")
    for token in (rita, narrow(running, "rita", "custom:fleet:read"), only_reads):
        assert ask(running, "api/audit", token).status_code == 200
        answer = ask(running, "api/machines/box/drain", token, method="POST")
        assert answer.status_code == 403
        assert ONLY_LOOKS in answer.json()["message"]
    acts = narrow(running, "gwen", "custom:fleet:admin")
    for token in (gwen, acts):
        for deed in ("drain", "resume"):
            answer = ask(running, f"api/machines/box/{deed}", token, method="POST")
            assert answer.status_code == 200
    assert [actor for actor, _, _ in log(running)[-4:]] == ["gwen"] * 4


def test_an_admin_of_the_fleet_runs_nothing_where_they_could_not_before(
    running: Fleet,
) -> None:
    """Whom a machine serves is its owner's word: a role of the Hub is no relation to it."""
    gwen, bob, ada = (
        ask(running, "api/explain?profile=one", running.token_of(name)).json()
        for name in ("gwen", "bob", "ada")
    )
    assert ada["may_be_asked"]
    assert not gwen["may_be_asked"]
    assert (gwen["headline"], gwen["counts"]) == (bob["headline"], bob["counts"])


def test_an_admin_by_a_role_moves_and_declares_lost(running: Fleet) -> None:
    """From the terminal of another machine, with a token in a file."""
    running.start_server("ada", {"profile": "all"})
    running.ask("ada", {"profile": "all"}, "second")
    waits = running.wait_state("ada", "queued", server="second")["workload"]
    token = running.folder / "token-of-gwen"
    token.write_text(running.token_of("gwen"))
    token.chmod(0o600)

    def run(*words: str) -> str:
        return subprocess.run(
            [
                *(sys.executable, "-m", "fleet_hub.cli", *words),
                *("--service", f"{running.url}/services/fleet/"),
                *("--token-file", str(token)),
            ],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path("/"),
        ).stdout

    assert waits in run("queue")
    assert "first in the line" in run("queue", "move", waits, "first")
    running.kill_agent("box")
    running.wait_until_away("box")
    assert "Declared lost" in run("lost", "box", "--why", "it burnt")
    assert running.status("ada")["state"] not in {"ready", "unknown"}
    assert log(running)[-2:] == [
        ("gwen", "moved_in_line", "admin"),
        ("gwen", "declared_lost", "admin"),
    ]


def test_who_loses_the_role_loses_the_sight_soon(running: Fleet) -> None:
    """By log-in and by token, within the time for which the Hub's word is believed."""
    session, token = running.log_in("remo"), running.token_of("remo")
    assert page(running, session, "line").status_code == 200
    assert ask(running, "api/queue", token).status_code == 200
    running.api(
        "DELETE", "groups/leaving/users", json={"users": ["remo"]}
    ).raise_for_status()
    wait_until(
        lambda: page(running, session, "line").status_code == 403, "his pages end"
    )
    wait_until(
        lambda: ask(running, "api/queue", token).status_code == 403, "his token ends"
    )
    assert page(running, session, "machines").status_code == 200
