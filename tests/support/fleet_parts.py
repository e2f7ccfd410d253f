"""What a fleet of a test is made from: its settings, its machines, its patience."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest
import requests
from command_lines import command_line
from patience import LOOK_SECONDS, PATIENCE
from plain_hub import proxy_command

from fleet_agent.probes.host.probe import HostProbe
from fleet_agent.probes.readers import ask_machine


ADMIN_TOKEN = "test-admin-token-of-the-fleet-harness"


def _allowed_cores() -> str:
    """Return how many cores agents here may lend: a container has fewer than it sees."""
    host = HostProbe(ask=ask_machine, state_dir="/", now=lambda: datetime.now(UTC))
    allowed = host.observe().facts.cores_allowed_milli.value
    assert allowed, "this machine does not tell how many cores it has"
    return f"{allowed / 1000:g}"


ALL_CORES = _allowed_cores()
CATALOG = f"""
classes:
  - {{name: small, title: Small, description: "Little.", cpu: 0.1, memory: 64M}}
  - {{name: whole, title: Whole, description: "All cores.", cpu: {ALL_CORES}, memory: 64M}}
runtimes:
  - {{name: pretend, title: Pretended, accelerators: [cpu], ref: pretended}}
profiles:
  - {{name: one, title: One, description: "A small one.", classes: [small], runtimes: [pretend]}}
  - {{name: all, title: All, description: "The whole machine.", classes: [whole], runtimes: [pretend]}}
  - {{name: both, title: Both, description: "Small or whole.", classes: [small, whole], runtimes: [pretend]}}
"""
"""What simulated machines serve: ``one`` fits often, ``all`` once per machine."""

UNHEARD = {
    *("offline", "no_machines", "controller_recovering"),
    *("capabilities_unknown", "not_evaluated_yet"),
}
"""Reasons that only say that a machine has not spoken yet."""

CONFIG = """
from fleet_hub import configure

c = get_config()
configure(c, catalog={catalog!r})
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {{"admin"}}
c.JupyterHub.services.append({{"name": "harness", "api_token": {token!r}}})
c.JupyterHub.load_roles.append({{
    "name": "harness",
    "services": ["harness"],
    "scopes": [
        "admin:users", "admin:servers", "tokens", "access:servers", "list:users",
        "groups", "proxy", "read:services",
    ],
}})
c.FleetSpawner.queue_hold = {queue_hold}
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": {slow_spawn_timeout}}}
{more}
"""

_Value = TypeVar("_Value")


class NotInTimeError(AssertionError):
    """What was waited for did not happen."""


def wait_until(
    look: Callable[[], _Value], what: str, *, patience: float = PATIENCE
) -> _Value:
    """Return the first truthy answer of *look*.

    Raises:
        NotInTimeError: there was none within *patience* seconds.
    """
    deadline = time.monotonic() + patience
    while True:
        answer = look()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise NotInTimeError(
                f"not within {patience:.0f} s: {what}; last: {answer!r}"
            )
        time.sleep(LOOK_SECONDS)


@dataclass(kw_only=True)
class Machine:
    """One enrolled machine and its agent's process."""

    name: str
    owner: str
    folder: Path
    settings: dict[str, Any]
    program: tuple[str, ...] = ("-m", "fleet_agent.cli")
    """What Python runs as the agent."""
    inside: tuple[str, ...] = ()
    """What runs a command on this machine; empty: it is the Hub's own."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The agent's process id."""
        assert self.process is not None
        return self.process.pid

    @property
    def runs(self) -> bool:
        """Whether the agent does."""
        return self.process is not None and self.process.poll() is None


@dataclass
class Seen:
    """Every process that a fleet has started, told apart from later ones of its pid."""

    begun: dict[int, float] = field(default_factory=dict)

    def note(self, roots: Iterable[subprocess.Popen[bytes]]) -> None:
        """Note *roots* and what they have started so far."""
        for root in roots:
            if root.poll() is not None:
                continue  # its process id may be somebody else's by now
            with suppress(psutil.Error):
                process = psutil.Process(root.pid)
                for each in [process, *process.children(recursive=True)]:
                    self.begun[each.pid] = each.create_time()

    def kill(self, folder: Path) -> None:
        """Kill what is left of them, and whatever names *folder* in its command."""
        left = []
        for pid, begun in self.begun.items():
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                if process.create_time() == begun:
                    left.append(process)
        left += [p for p in psutil.process_iter() if str(folder) in command_line(p)]
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=PATIENCE)


def tells_of_a_machine(answer: dict[str, Any]) -> bool:
    """Whether some offer of *answer* is what a machine that is known makes of it."""
    found = [
        (offer.get("explanation") or {}).get("reason") for offer in answer["offers"]
    ]
    return any(reason not in UNHEARD for reason in found)


def key_in(hub: Path, user: str, server: str) -> str:
    """Return the controller's key of a server, from the database *hub*.

    Raises:
        LookupError: the Hub has not written it yet.
    """
    database = sqlite3.connect(hub)
    try:
        row = database.execute(
            "SELECT users.id, spawners.id FROM spawners JOIN users "
            "ON users.id = spawners.user_id WHERE users.name = ? AND spawners.name = ?",
            (user, server),
        ).fetchone()
    finally:
        database.close()
    if row is None:
        raise LookupError(f"the Hub knows no server {user}/{server}")
    return f"{row[0]}-{row[1]}"


def server_path(user: str, server: str) -> str:
    """Return the path of a server in the Hub's API."""
    return f"users/{user}/servers/{server}" if server else f"users/{user}/server"


def answers(url: str) -> bool:
    """Whether *url* answers well."""
    try:
        return requests.get(url, timeout=PATIENCE).status_code == 200
    except requests.RequestException:
        return False


def events(url: str, token: str) -> list[dict[str, Any]]:
    """Return all events of the stream at *url*, read to its end."""
    headers = {"Authorization": f"token {token}"}
    with requests.get(url, headers=headers, stream=True, timeout=PATIENCE) as answer:
        answer.raise_for_status()
        return [
            json.loads(line.removeprefix(b"data: "))
            for line in answer.iter_lines()
            if line.startswith(b"data: ")
        ]


def logged_in(url: str, user: str) -> requests.Session:
    """Return a browser's cookies after *user* logged in at the Hub at *url*."""
    session = requests.Session()
    page = session.get(f"{url}/hub/login", timeout=PATIENCE)
    xsrf = re.search(r'name="_xsrf" value="([^"]+)"', page.text)
    assert xsrf, page.text
    form = {"username": user, "password": user, "_xsrf": xsrf[1]}
    session.post(f"{url}/hub/login", data=form, timeout=PATIENCE)
    return session


def hub_environment(data: Path, controller_port: int) -> dict[str, str]:
    """Return the variables of a Hub whose fleet keeps its things in *data*."""
    proxy = proxy_command()
    assert proxy, "configurable-http-proxy is missing: npm ci"
    path = [str(Path(sys.executable).parent), str(Path(proxy).parent)]
    return os.environ | {
        "JUPYTERHUB_FLEET_DATA_DIR": str(data),
        "JUPYTERHUB_FLEET_CONTROLLER_PORT": str(controller_port),
        "PATH": os.pathsep.join([*path, os.environ.get("PATH", os.defpath)]),
    }


def missing() -> str | None:
    """Return why a fleet cannot run on this machine, or None."""
    if proxy_command() is None:
        return "configurable-http-proxy is not installed (npm ci)"
    if shutil.which("node") is None:
        return "Node is not installed"
    return None


NEEDS_HUB = (
    pytest.mark.hub,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
)
"""How a test of a whole fleet is marked."""
