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
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import requests
from command_lines import command_line
from fleet_parts import (
    ADMIN_TOKEN,
    CATALOG,
    CONFIG,
    PATIENCE,
    Machine,
    NotInTimeError,
    Seen,
    answers,
    events,
    hub_environment,
    key_in,
    logged_in,
    missing,  # noqa: F401 - asked for here
    server_path,
    tells_of_a_machine,
    wait_until,
)
from patience import free_port


@dataclass(kw_only=True)
class Fleet:
    """One running fleet; leaving the ``with`` block ends every process of it."""

    folder: Path
    queue_hold: float = 60
    slow_spawn_timeout: float = 10
    """How long the Hub lets a start go on before it answers who asked for it."""
    host: str = "127.0.0.1"
    """Where the proxy listens."""
    catalog: str | None = CATALOG
    more_config: str = ""
    public_port: int = field(default_factory=free_port)
    hub_port: int = field(default_factory=free_port)
    proxy_port: int = field(default_factory=free_port)
    controller_port: int = field(default_factory=free_port)
    machines: dict[str, Machine] = field(default_factory=dict)
    _hub: subprocess.Popen[bytes] | None = None
    _tokens: dict[str, str] = field(default_factory=dict)
    _seen: Seen = field(default_factory=Seen)

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
        return f"http://{self.host}:{self.public_port}"

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
                slow_spawn_timeout=self.slow_spawn_timeout,
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
                env=hub_environment(self.data, self.controller_port),
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
        _, alive = psutil.wait_procs(controller, timeout=PATIENCE)
        assert not alive

    def end_hub(self) -> None:
        """Have the Hub shut down in order."""
        self._remember()
        assert self._hub is not None
        self._hub.terminate()
        self._hub.wait(PATIENCE)

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
        wait_until(lambda: answers(f"{self.service}health"), "the controller is up")

    def controller_processes(self) -> list[psutil.Process]:
        """Return the supervisor and the controller, the latter last."""
        assert self._hub is not None
        with suppress(psutil.Error):
            return [
                process
                for process in psutil.Process(self._hub.pid).children(recursive=True)
                if "fleet_hub.service" in command_line(process)
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
                self._hub.wait(PATIENCE)
        self._seen.kill(self.folder)
        for root in self._roots():
            root.wait()

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
            self.wait_for_agent(name)
        return machine

    def join_machine(
        self,
        name: str,
        *,
        owner: str,
        inside: Sequence[str],
        settings: dict[str, Any] | None = None,
        start: bool = True,
    ) -> Machine:
        """Enrol another machine by its own command, and start its agent there."""
        code = self.controller("POST", "codes", json={"name": name, "owner": owner})
        folder = self.folder / f"agent-{name}"
        subprocess.run(
            [
                *(*inside, sys.executable, "-m", "fleet_agent.cli", "enrol"),
                *("--controller", f"{self.url}/services/fleet/"),
                *("--code", code["code"], "--state-dir", str(folder)),
                "--trusted-network",
            ],
            check=True,
            timeout=PATIENCE,
        )
        machine = Machine(
            name=name,
            owner=owner,
            folder=folder,
            settings=settings or {"drivers": ["simulation"]},
            inside=tuple(inside),
        )
        self.machines[name] = machine
        if start:
            self.start_agent(name)
            self.wait_for_agent(name)
        return machine

    def wait_for_agent(self, name: str) -> None:
        """Wait until the agent of this very machine is heard, and its machine known."""
        wait_until(lambda: self._link(name) == (True, True), f"{name} is linked")
        self.wait_for_machine(self.machines[name].owner)

    def wait_until_away(self, name: str) -> None:
        """Wait until a killed agent's link, which lives on a moment, is known to be over."""
        wait_until(lambda: not self._link(name)[0], f"{name} is known to be away")

    def _link(self, name: str) -> tuple[bool, bool]:
        """Return whether a machine has a link, and has told all that it runs."""
        told = self.controller("GET", "machines")["machines"]
        return next(
            (it["online"], it["inventory_known"]) for it in told if it["name"] == name
        )

    def wait_for_machine(self, owner: str) -> None:
        """Wait until some machine of *owner* is heard of: up, inventory in, known."""
        body = {"principal": {"user_id": 1_000_000, "name": owner}}
        wait_until(
            lambda: tells_of_a_machine(self.controller("POST", "offers", json=body)),
            f"a machine of {owner} is up",
        )

    def restart_agent(self, name: str = "box", **simulation: Any) -> None:
        """Kill an agent and start it again, behaving like *simulation* from now on."""
        self.kill_agent(name)
        self.wait_until_away(name)
        self.machines[name].settings["simulation"] = simulation
        self.start_agent(name)
        self.wait_for_agent(name)

    def start_agent(self, name: str = "box") -> None:
        """Start the agent of a machine, with its settings as they are now."""
        machine = self.machines[name]
        config = self.folder / f"agent-{name}.json"
        config.write_text(json.dumps({"FleetAgent": machine.settings}))
        with (self.folder / f"agent-{name}.log").open("ab") as log:
            machine.process = subprocess.Popen(
                [
                    *(*machine.inside, sys.executable, *machine.program, "run"),
                    f"--state-dir={machine.folder}",
                    *self._told(machine),
                    f"--config={config}",
                ],
                env=hub_environment(self.data, self.controller_port),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def _told(self, machine: Machine) -> list[str]:
        """Return what an agent is told that was not enrolled by its own command."""
        if machine.inside:
            return []
        return [f"--controller={self.service}", f"--owner={machine.owner}"]

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
            machine.process.wait(PATIENCE)
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
        return logged_in(self.url, user)

    def ask(
        self, user: str, options: dict[str, Any] | None, server: str = ""
    ) -> requests.Response:
        """Ask for a server; the answer comes after ``slow_spawn_timeout`` at the latest."""
        body = None if options is None else {"user_options": options}
        return self.api("POST", server_path(user, server), user=user, json=body)

    def start_server(
        self, user: str, options: dict[str, Any], server: str = ""
    ) -> dict[str, Any]:
        """Start a server, and return the Hub's model of it once it is ready."""
        answer = self.ask(user, options, server)
        assert answer.status_code in {201, 202}, answer.text
        return self.wait_ready(user, server)

    def stop_server(self, user: str, server: str = "", **more: Any) -> None:
        """Stop a server, and wait until the Hub says so."""
        answer = self.api("DELETE", server_path(user, server), user=user, **more)
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
        path = f"{server_path(user, server)}/progress"
        return events(f"{self.url}/hub/api/{path}", self.token_of(user))

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
        """Return the controller's key of a server, from the Hub's database.

        Raises:
            LookupError: the Hub has not written it yet.
        """
        return key_in(self.data / "hub" / "jupyterhub.sqlite", user, server)

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
            with suppress(requests.ConnectionError, requests.HTTPError, LookupError):
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
        return answers(f"{self.service}health") and answers(f"{self.url}/hub/health")

    def _catalog_file(self) -> str | None:
        if self.catalog is None:
            return None
        path = self.folder / "catalog.yaml"
        path.write_text(self.catalog)
        return str(path)

    def _remember(self) -> None:
        """Note all processes of this fleet: killed parents lose their children."""
        self._seen.note(self._roots())

    def _roots(self) -> list[subprocess.Popen[bytes]]:
        processes = [self._hub, *(each.process for each in self.machines.values())]
        return [process for process in processes if process is not None]
