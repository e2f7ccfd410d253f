"""A fleet that several tests have one after the other, in any order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any
from urllib.parse import quote

from fleet import Fleet, Machine
from fleet_parts import wait_until

from fleet_contracts.allocations import ENDED


Server = tuple[str, str]
"""Its user's name and its own."""


@contextmanager
def as_found(fleet: Fleet) -> Iterator[Fleet]:
    """Let a test have *fleet*, and put right what it leaves behind, failed or not.

    Hub and agents run again, the latter with the settings that they had; servers of the
    test's own are ended; every machine takes work, and all that it can do is known.
    """
    found = servers_of(fleet)
    agents = {name: _chosen(machine) for name, machine in fleet.machines.items()}
    yield fleet
    fleet.ensure_hub()
    for name, chosen in agents.items():
        _have_agent(fleet, name, chosen)
    running = [name for name, machine in fleet.machines.items() if machine.runs]
    for name in running:
        fleet.wait_for_agent(name)
        if fleet.told_of(name)["draining_by"]:
            fleet.controller("POST", f"machines/{name}/resume")
    for user, server in servers_of(fleet):
        if (user, server) not in found:
            give_up(fleet, user, server)
    wait_until(
        lambda: (
            set(servers_of(fleet)) <= set(found)
            and not any(fleet.told_of(name)["foreign_allocations"] for name in running)
        ),
        "nothing runs or waits that did not before",
    )


def servers_of(fleet: Fleet) -> list[Server]:
    """Return the servers that wait, then those that run, for controller or Hub."""
    waiting = fleet.controller("GET", "queue")["waiting"]
    machines = fleet.controller("GET", "machines")["machines"]
    users = fleet.api("GET", "users?state=active").json()
    found = [
        *((each["user"], each["server"]) for each in waiting),
        *((it["user"], it["server"]) for each in machines for it in each["holds"]),
        *((each["name"], server) for each in users for server in each["servers"]),
    ]
    return list(dict.fromkeys(found))


def give_up(fleet: Fleet, user: str, server: str = "") -> None:
    """End a server, however far its start is: in the line, under way or ready."""
    # What is ready has left the line, and the controller says so.
    fleet.controller("POST", f"servers/{fleet.key(user, server)}/leave", raw=True)
    fleet.stop_server(quote(user, safe=""), server)
    fleet.wait_state(user, *ENDED, server=server)


def _chosen(machine: Machine) -> tuple[dict[str, Any], tuple[str, ...]]:
    return deepcopy(machine.settings), machine.program


def _have_agent(
    fleet: Fleet, name: str, chosen: tuple[dict[str, Any], tuple[str, ...]]
) -> None:
    """Have a machine's agent run as *chosen*, if one was started."""
    machine = fleet.machines[name]
    if machine.process is None:
        return
    if _chosen(machine) != chosen:
        fleet.kill_agent(name)
        machine.settings, machine.program = chosen
    if not machine.runs:
        fleet.wait_until_away(name)
        fleet.start_agent(name)
