"""A whole fleet of real processes in one folder: Hub, proxy, controller and agents.

Each part can be killed and started again by itself::

    with Fleet(tmp_path) as fleet:
        fleet.add_machine("box", owner="ada")
        fleet.start_server("ada", {"profile": "one"})
        fleet.kill_hub()
        fleet.start_hub()

Users log in with their name as the password.  Waiting is for events, with a limit:
the controller's own long polls where they exist, else a condition looked at often.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import psutil
import requests
from plain_hub import free_port, proxy_command


PATIENCE = 120.0
LOOK_SECONDS = 0.05
ADMIN_TOKEN = "test-admin-token-of-the-fleet-harness"

CATALOG = f"""
classes:
  - {{name: small, title: Small, description: "Little.", cpu: 0.1, memory: 64M}}
  - {{name: whole, title: Whole, description: "All cores.", cpu: {os.cpu_count()}, memory: 64M}}
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
    process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The agent's process id."""
        assert self.process is not None
        return self.process.pid


@dataclass(kw_only=True)
class Fleet:
    """One running fleet; leaving the ``with`` block ends every process of it."""

    folder: Path
    queue_hold: float = 60
    catalog: str | None = CATALOG
    more_config: str = ""
    public_port: int = field(default_factory=free_port)
    hub_port: int = field(default_factory=free_port)
    proxy_port: int = field(default_factory=free_port)
    controller_port: int = field(default_factory=free_port)
    machines: dict[str, Machine] = field(default_factory=dict)
    _hub: subprocess.Popen[bytes] | None = None
    _tokens: dict[str, str] = field(default_factory=dict)
    _seen: dict[int, float] = field(default_factory=dict)

    # ------------------------------------------------------------- start and end

    def __enter__(self) -> Self:
        try:
            self.start_hub()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """What people open."""
        return f"http://127.0.0.1:{self.public_port}"

    @property
    def service(self) -> str:
        """The controller's service, directly."""
        return f"http://127.0.0.1:{self.controller_port}/services/fleet/"

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.folder / "data"

    @property
    def hub_log(self) -> Path:
        """What Hub, proxy and controller wrote."""
        return self.folder / "hub.log"

    def start_hub(self, *, wait: bool = True) -> None:
        """Start the Hub with its proxy and its controller; wait until they answer."""
        config = self.folder / "jupyterhub_config.py"
        config.write_text(
            CONFIG.format(
                catalog=self._catalog_file(),
                token=ADMIN_TOKEN,
                queue_hold=self.queue_hold,
                more=self.more_config,
            )
        )
        with self.hub_log.open("ab") as log:
            self._hub = subprocess.Popen(
                [
                    *(sys.executable, "-m", "jupyterhub", f"--config={config}"),
                    f"--JupyterHub.bind_url={self.url}",
                    f"--JupyterHub.hub_port={self.hub_port}",
                    f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{self.proxy_port}",
                ],
                cwd=self.folder,
                env=self._environment(),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        if wait:
            wait_until(self._hub_is_up, f"the Hub is up; see {self.hub_log}")
            self._remember()

    def kill_hub(self) -> None:
        """Kill the Hub like a power cut; its controller dies with it, as designed."""
        self._remember()
        assert self._hub is not None
        controller = self.controller_processes()
        self._hub.kill()
        self._hub.wait()
        psutil.wait_procs(controller, timeout=10)

    def end_hub(self) -> None:
        """Have the Hub shut down in order."""
        self._remember()
        assert self._hub is not None
        self._hub.terminate()
        self._hub.wait(30)

    def kill_controller(self) -> None:
        """Kill the controller; its supervisor starts the next one at once."""
        self._remember()
        *_, controller = self.controller_processes()
        controller.kill()
        wait_until(
            lambda: (
                not controller.is_running()
                or controller.status() == psutil.STATUS_ZOMBIE
            ),
            "the controller is dead",
        )

    def wait_for_controller(self) -> None:
        """Wait until the controller answers."""
        wait_until(lambda: _answers(f"{self.service}health"), "the controller is up")

    def controller_processes(self) -> list[psutil.Process]:
        """Return the supervisor and the controller, the latter last."""
        assert self._hub is not None
        with suppress(psutil.Error):
            return [
                process
                for process in psutil.Process(self._hub.pid).children(recursive=True)
                if "fleet_hub.service" in " ".join(process.cmdline())
            ]
        return []

    def close(self) -> None:
        """End everything that was started, agents' workloads included."""
        self._remember()
        for machine in self.machines.values():
            if machine.process is not None and machine.process.poll() is None:
                self._end_agent(machine)
        if self._hub is not None and self._hub.poll() is None:
            self._hub.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._hub.wait(20)
        self._kill_what_is_left()

    # ------------------------------------------------------------------ machines

    def add_machine(
        self,
        name: str = "box",
        *,
        owner: str = "ada",
        start: bool = True,
        **simulation: Any,
    ) -> Machine:
        """Enrol a simulated machine, and start its agent; *simulation* is its behaviour."""
        settings = {"drivers": ["simulation"], "simulation": simulation}
        return self.add_agent(name, owner=owner, settings=settings, start=start)

    def add_agent(
        self, name: str, *, owner: str, settings: dict[str, Any], start: bool = True
    ) -> Machine:
        """Enrol a machine whose agent has these settings, and start it."""
        folder = self.folder / f"agent-{name}"
        folder.mkdir(mode=0o700)
        answer = self.controller(
            "POST", "machines", json={"name": name, "owner": owner, "local": True}
        )
        token = folder / "token"
        token.write_text(answer["token"])
        token.chmod(0o600)
        machine = Machine(name=name, owner=owner, folder=folder, settings=settings)
        self.machines[name] = machine
        if start:
            self.start_agent(name)
            self.wait_for_machine(owner)
        return machine

    def wait_for_machine(self, owner: str) -> None:
        """Wait until some machine of *owner* is heard of: up, inventory in, known."""

        def heard() -> bool:
            principal = {"user_id": 1_000_000, "name": owner}
            answer = self.controller("POST", "offers", json={"principal": principal})
            reasons = [
                (o.get("explanation") or {}).get("reason") for o in answer["offers"]
            ]
            return any(reason not in UNHEARD for reason in reasons)

        wait_until(heard, f"a machine of {owner} is up")

    def restart_agent(self, name: str = "box", **simulation: Any) -> None:
        """Kill an agent and start it again, behaving like *simulation* from now on."""
        self.kill_agent(name)
        self.machines[name].settings["simulation"] = simulation
        self.start_agent(name)
        self.wait_for_machine(self.machines[name].owner)

    def start_agent(self, name: str = "box") -> None:
        """Start the agent of a machine, with its settings as they are now."""
        machine = self.machines[name]
        config = self.folder / f"agent-{name}.json"
        config.write_text(json.dumps({"FleetAgent": machine.settings}))
        with (self.folder / f"agent-{name}.log").open("ab") as log:
            machine.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "fleet_agent.cli", "run"),
                    f"--state-dir={machine.folder}",
                    f"--controller={self.service}",
                    f"--owner={machine.owner}",
                    f"--config={config}",
                ],
                env=self._environment(),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def kill_agent(self, name: str = "box") -> None:
        """Kill an agent; what it runs lives on."""
        self._remember()
        process = self.machines[name].process
        assert process is not None
        process.kill()
        process.wait()

    def _end_agent(self, machine: Machine) -> None:
        assert machine.process is not None
        machine.process.terminate()
        try:
            machine.process.wait(20)
        except subprocess.TimeoutExpired:
            machine.process.kill()
            machine.process.wait()

    # --------------------------------------------------------------- the Hub's API

    def api(
        self,
        method: str,
        path: str,
        *,
        user: str | None = None,
        **more: Any,
    ) -> requests.Response:
        """Call the Hub's REST API as *user*, or as an admin service."""
        token = self.token_of(user) if user else ADMIN_TOKEN
        return requests.request(
            method,
            f"{self.url}/hub/api/{path}",
            headers={"Authorization": f"token {token}"},
            timeout=PATIENCE,
            **more,
        )

    def token_of(self, user: str) -> str:
        """Return a token with all that *user* may do, making the user if need be."""
        if user not in self._tokens:
            if self.api("GET", f"users/{user}").status_code == 404:
                self.api("POST", f"users/{user}").raise_for_status()
            answer = self.api("POST", f"users/{user}/tokens", json={"note": "harness"})
            answer.raise_for_status()
            self._tokens[user] = answer.json()["token"]
        return self._tokens[user]

    def log_in(self, user: str) -> requests.Session:
        """Return a browser's cookies after *user* logged in."""
        session = requests.Session()
        page = session.get(f"{self.url}/hub/login", timeout=PATIENCE)
        xsrf = re.search(r'name="_xsrf" value="([^"]+)"', page.text)
        assert xsrf, page.text
        form = {"username": user, "password": user, "_xsrf": xsrf[1]}
        session.post(f"{self.url}/hub/login", data=form, timeout=PATIENCE)
        return session

    def ask(
        self, user: str, options: dict[str, Any] | None, server: str = ""
    ) -> requests.Response:
        """Ask for a server; the answer comes after ten seconds at the latest."""
        body = None if options is None else {"user_options": options}
        return self.api("POST", _server_path(user, server), user=user, json=body)

    def start_server(
        self, user: str, options: dict[str, Any], server: str = ""
    ) -> dict[str, Any]:
        """Start a server, and return the Hub's model of it once it is ready."""
        answer = self.ask(user, options, server)
        assert answer.status_code in {201, 202}, answer.text
        return self.wait_ready(user, server)

    def stop_server(self, user: str, server: str = "", **more: Any) -> None:
        """Stop a server, and wait until the Hub says so."""
        answer = self.api("DELETE", _server_path(user, server), user=user, **more)
        assert answer.status_code in {202, 204}, answer.text
        wait_until(
            lambda: self.server(user, server) is None, f"{user}/{server} stopped"
        )

    def server(self, user: str, server: str = "") -> dict[str, Any] | None:
        """Return the Hub's model of an active server, or None."""
        answer = self.api("GET", f"users/{user}")
        answer.raise_for_status()
        model: dict[str, Any] | None = answer.json()["servers"].get(server)
        return model

    def wait_ready(
        self, user: str, server: str = "", *, patience: float = PATIENCE
    ) -> dict[str, Any]:
        """Wait until a server is ready for the Hub."""

        def ready() -> dict[str, Any] | None:
            model = self.server(user, server)
            return model if model and model["ready"] else None

        return wait_until(ready, f"{user}/{server} is ready", patience=patience)

    def progress(self, user: str, server: str = "") -> list[dict[str, Any]]:
        """Return all events of a start's progress stream, read to its end."""
        path = f"{_server_path(user, server)}/progress"
        with requests.get(
            f"{self.url}/hub/api/{path}",
            headers={"Authorization": f"token {self.token_of(user)}"},
            stream=True,
            timeout=PATIENCE,
        ) as answer:
            answer.raise_for_status()
            return [
                json.loads(line.removeprefix(b"data: "))
                for line in answer.iter_lines()
                if line.startswith(b"data: ")
            ]

    # ---------------------------------------------------------------- the controller

    def controller(
        self, method: str, path: str, *, raw: bool = False, **more: Any
    ) -> Any:
        """Call the controller's internal API as the Spawner does."""
        secret = (self.data / "controller" / "spawner.secret").read_text().strip()
        answer = requests.request(
            method,
            f"{self.service}internal/{path}",
            headers={"Authorization": f"Bearer {secret}"},
            timeout=PATIENCE,
            **more,
        )
        if raw:
            return answer
        answer.raise_for_status()
        return answer.json() if answer.text else None

    def key(self, user: str, server: str = "") -> str:
        """Return the controller's key of a server, from the Hub's database."""
        import sqlite3  # noqa: PLC0415 - only here

        database = sqlite3.connect(self.data / "hub" / "jupyterhub.sqlite")
        try:
            row = database.execute(
                "SELECT users.id, spawners.id FROM spawners JOIN users "
                "ON users.id = spawners.user_id WHERE users.name = ? AND spawners.name = ?",
                (user, server),
            ).fetchone()
        finally:
            database.close()
        return f"{row[0]}-{row[1]}"

    def status(self, user: str, server: str = "") -> dict[str, Any]:
        """Return what the controller knows about a server."""
        status: dict[str, Any] = self.controller(
            "GET", f"servers/{self.key(user, server)}"
        )
        return status

    def wait_state(
        self, user: str, *states: str, server: str = "", patience: float = PATIENCE
    ) -> dict[str, Any]:
        """Wait until the controller says that a server is in one of *states*."""

        def there() -> dict[str, Any] | None:
            with suppress(requests.ConnectionError, requests.HTTPError):
                status = self.status(user, server)
                return status if status["state"] in states else None
            return None

        return wait_until(there, f"{user}/{server} is {states}", patience=patience)

    def timeline(self, user: str, server: str = "") -> dict[str, Any]:
        """Return the timeline's document of a server."""
        document: dict[str, Any] = self.controller(
            "GET", f"servers/{self.key(user, server)}/timeline"
        )
        return document

    # ------------------------------------------------------------------------ inside

    def _hub_is_up(self) -> bool:
        assert self._hub is not None
        if self._hub.poll() is not None:
            tail = self.hub_log.read_text(errors="replace")[-3000:]
            raise NotInTimeError(f"the Hub ended with {self._hub.returncode}:\n{tail}")
        # the proxy last: it logs each request that comes before the Hub's route
        return _answers(f"{self.service}health") and _answers(f"{self.url}/hub/health")

    def _catalog_file(self) -> str | None:
        if self.catalog is None:
            return None
        path = self.folder / "catalog.yaml"
        path.write_text(self.catalog)
        return str(path)

    def _environment(self) -> dict[str, str]:
        proxy = proxy_command()
        assert proxy, "configurable-http-proxy is missing: npm ci"
        path = [str(Path(sys.executable).parent), str(Path(proxy).parent)]
        return os.environ | {
            "JUPYTERHUB_FLEET_DATA_DIR": str(self.data),
            "JUPYTERHUB_FLEET_CONTROLLER_PORT": str(self.controller_port),
            "PATH": os.pathsep.join([*path, os.environ.get("PATH", os.defpath)]),
        }

    def _remember(self) -> None:
        """Note all processes of this fleet: killed parents lose their children."""
        roots = [self._hub, *(machine.process for machine in self.machines.values())]
        for root in roots:
            if root is None or root.poll() is not None:
                continue  # its process id may be somebody else's by now
            with suppress(psutil.Error):
                process = psutil.Process(root.pid)
                for each in [process, *process.children(recursive=True)]:
                    self._seen[each.pid] = each.create_time()

    def _kill_what_is_left(self) -> None:
        left = []
        for pid, begun in self._seen.items():
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                if process.create_time() == begun:
                    left.append(process)
        left += [p for p in psutil.process_iter() if self._works_here(p)]
        for process in left:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(left, timeout=10)
        for root in [self._hub, *(m.process for m in self.machines.values())]:
            if root is not None:
                root.wait()

    def _works_here(self, process: psutil.Process) -> bool:
        """Whether *process* names this fleet's folder in its command line."""
        with suppress(psutil.Error):
            return any(str(self.folder) in part for part in process.cmdline())
        return False


def _server_path(user: str, server: str) -> str:
    return f"users/{user}/servers/{server}" if server else f"users/{user}/server"


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).status_code == 200
    except requests.RequestException:
        return False


def missing() -> str | None:
    """Return why a fleet cannot run on this machine, or None."""
    if proxy_command() is None:
        return "configurable-http-proxy is not installed (npm ci)"
    if shutil.which("node") is None:
        return "Node is not installed"
    return None
