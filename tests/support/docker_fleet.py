"""A fleet with a machine that runs notebooks in containers of a private engine."""

from __future__ import annotations

from typing import Any

from docker_engine import PrivateEngine
from docker_images import NOTEBOOK, SHOWN
from fleet import Fleet, Machine


NOT_YET = "127.0.0.1:2/not-yet:1"
"""An image that a test with a registry puts its own in the place of."""

CATALOG = f"""
classes:
  - {{name: small, title: Small, description: "Little.", cpu: 1, memory: 1G}}
runtimes:
  - name: jupyter
    title: JupyterLab
    accelerators: [cpu]
    driver_refs: {{docker: "{NOTEBOOK}"}}
  - name: absent
    title: Nowhere
    accelerators: [cpu]
    driver_refs: {{docker: "127.0.0.1:1/secret-name/absent:1"}}
  - name: fetched
    title: From elsewhere
    accelerators: [cpu]
    driver_refs: {{docker: "{NOT_YET}"}}
profiles:
  - {{name: lab, title: Lab, description: "A notebook.", classes: [small], runtimes: [jupyter]}}
  - {{name: lost, title: Lost, description: "An image nobody has.", classes: [small], runtimes: [absent]}}
  - {{name: fetched, title: Fetched, description: "An image to be fetched.", classes: [small], runtimes: [fetched]}}
trust:
  container: guest
"""

HUB = """
# Containers do not see this machine's loopback.
c.JupyterHub.hub_ip = "0.0.0.0"
c.JupyterHub.hub_connect_ip = "127.0.0.1"
"""
"""What of the Hub's configuration lets containers reach it."""


def add_docker_machine(
    fleet: Fleet, engine: PrivateEngine, name: str = "box", *, owner: str = "ada"
) -> Machine:
    """Enrol a machine with the Docker driver, lent to everybody, and start its agent."""
    machine = fleet.add_agent(
        name, owner=owner, settings=docker_machine_settings(engine), start=False
    )
    lend_to_everybody(fleet, name)
    fleet.start_agent(name)
    fleet.wait_for_agent(name)
    return machine


def lend_to_everybody(fleet: Fleet, name: str) -> None:
    """Widen a machine's audience, by its owner's word and by an admin's."""
    for deed in ("lending", "audience"):
        fleet.controller("POST", f"machines/{name}/{deed}", json={"choice": "guest"})


def docker_machine_settings(engine: PrivateEngine) -> dict[str, Any]:
    """Return the settings of an agent that uses *engine* and nothing else."""
    return {
        "drivers": ["docker"],
        "docker_host": engine.host,
        "docker_folders": [str(folder) for folder in SHOWN],
        # A test that fails must leave no notebook behind.
        "stop_workloads_on_exit": True,
    }
