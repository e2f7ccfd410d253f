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
from dataclasses import dataclass, field
from typing import Any

from fleet_hub_process import FleetHubProcess
from fleet_parts import (
    PATIENCE,
    Machine,
    hub_environment,
    tells_of_a_machine,
    wait_until,
)
from typing_extensions import override


@dataclass(kw_only=True)
class Fleet(FleetHubProcess):
    """One running fleet; leaving the ``with`` block ends every process of it."""

    machines: dict[str, Machine] = field(default_factory=dict)

    @override
    def close(self) -> None:
        """End everything that was started, agents' workloads included."""
        self._remember()
        for machine in self.machines.values():
            if machine.runs:
                self._end_agent(machine)
        super().close()

    @override
    def _roots(self) -> list[subprocess.Popen[bytes]]:
        agents = [machine.process for machine in self.machines.values()]
        return [*super()._roots(), *(each for each in agents if each is not None)]

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
        """Wait until an agent is heard, and all that its machine can do is known.

        Before that a start waits, and whoever asks is told that nobody knows yet.
        """
        wait_until(lambda: self._is_known(name), f"{name} is known")
        body = {"principal": {"user_id": 1_000_000, "name": self.machines[name].owner}}
        wait_until(
            lambda: tells_of_a_machine(self.controller("POST", "offers", json=body)),
            f"{name} is open to its owner",
        )

    def wait_until_away(self, name: str) -> None:
        """Wait until a killed agent's link, which lives on a moment, is known to be over."""
        wait_until(
            lambda: not self.told_of(name)["online"], f"{name} is known to be away"
        )

    def told_of(self, name: str) -> dict[str, Any]:
        """Return what the controller tells of a machine."""
        told = self.controller("GET", "machines")["machines"]
        return next(machine for machine in told if machine["name"] == name)

    def _is_known(self, name: str) -> bool:
        told = self.told_of(name)
        return bool(
            told["online"]
            and told["inventory_known"]
            and told["capabilities"]["settled"]
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
