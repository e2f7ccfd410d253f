"""From the click to a ready notebook in a container, beside DockerSpawner in one run.

``pip install .[bench]``, then ``python benchmarks/docker_ready.py [--samples 10]``
as root.  Both Hubs run at once on one engine of their own, with the same image, limits
and interpreter; starts alternate between them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from click_to_ready import measure
from figures import keep
from hubs import OWNER, SLOW, Side, pid_of


sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from docker_engine import PrivateEngine, missing_for_docker, private_engine
from docker_fleet import CATALOG, HUB, add_docker_machine
from docker_images import NOTEBOOK, SHOWN, make_images
from fleet import Fleet
from plain_hub import plain_hub


TARGETS = {"ready_ratio": 0.8, "stop_ratio": 1.2}
PEER = """
from fleet_hub.hub_database import use_write_ahead_log

use_write_ahead_log()
c.JupyterHub.db_url = "sqlite:///jupyterhub.sqlite"
c.JupyterHub.hub_ip = "0.0.0.0"
c.JupyterHub.hub_connect_ip = {gateway!r}
c.JupyterHub.spawner_class = "dockerspawner.DockerSpawner"
c.DockerSpawner.client_kwargs = {{"base_url": {host!r}}}
c.DockerSpawner.image = {image!r}
c.DockerSpawner.cmd = ["jupyterhub-singleuser"]
c.DockerSpawner.network_name = "peer"
c.DockerSpawner.remove = True
c.DockerSpawner.mem_limit = "1G"
c.DockerSpawner.cpu_limit = 1
c.DockerSpawner.read_only_volumes = {shown!r}
c.DockerSpawner.volumes = {{{home!r}: "/home/jovyan"}}
c.DockerSpawner.notebook_dir = "/home/jovyan"
c.DockerSpawner.environment = {{"HOME": "/home/jovyan"}}
c.DockerSpawner.extra_create_kwargs = {{"user": "1000"}}
c.DockerSpawner.http_timeout = 120
c.DockerSpawner.start_timeout = 120
"""


def main() -> int:
    """Measure, keep, and return 0 if the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10)
    count = parser.parse_args().samples
    if (reason := missing_for_docker()) is not None:
        parser.error(reason)
    with (
        tempfile.TemporaryDirectory() as fleet_folder,
        tempfile.TemporaryDirectory() as peer_folder,
        private_engine(in_memory=False) as engine,
        fleet_side(Path(fleet_folder), engine) as (ours, _),
        peer_side(Path(peer_folder), engine) as theirs,
    ):
        samples = measure((ours, theirs), count)
    return 0 if keep_figures(samples) else 1


@contextmanager
def fleet_side(folder: Path, engine: PrivateEngine) -> Iterator[tuple[Side, Fleet]]:
    """A Hub with the fleet and one machine whose engine has the image."""
    with engine.client() as client:
        make_images(client)
    with Fleet(folder=folder, catalog=CATALOG, more_config=HUB + SLOW) as fleet:
        machine = add_docker_machine(fleet, engine, owner=OWNER)
        hub, agent = fleet._hub, machine.process  # noqa: SLF001 - the harness keeps it to itself
        assert hub is not None
        assert agent is not None
        agent_process = psutil.Process(agent.pid)
        options = {"user_options": {"profile": "lab"}}
        fleet.token_of(OWNER)
        yield (
            Side(
                name="fleet",
                hub=psutil.Process(hub.pid),
                others=lambda: [*fleet.controller_processes(), agent_process],
                settle=lambda: None,
                call=lambda method: fleet.api(
                    method, f"users/{OWNER}/server", json=options
                ),
            ),
            fleet,
        )


@contextmanager
def peer_side(folder: Path, engine: PrivateEngine) -> Iterator[Side]:
    """A Hub with DockerSpawner on the same engine."""
    home = folder / "home"
    home.mkdir()
    os.chown(home, 1000, 1000)
    folder.chmod(0o755)
    with engine.client() as client:
        client.create_network("peer", driver="bridge")
        gateway = gateway_of(client.inspect_network("peer"))
    config = PEER.format(
        gateway=gateway,
        host=engine.host,
        image=NOTEBOOK,
        shown={str(path): str(path) for path in SHOWN},
        home=str(home),
    )
    with plain_hub(folder, config + SLOW) as hub:
        hub.browser(OWNER)
        yield Side(
            name="dockerspawner",
            hub=psutil.Process(pid_of(hub)),
            others=list,
            settle=lambda: None,
            call=lambda method: hub.api(method, f"users/{OWNER}/server"),
        )


def gateway_of(network: dict[str, Any]) -> str:
    """Return this machine's address in a network."""
    return str(network["IPAM"]["Config"][0]["Gateway"])


def keep_figures(samples: dict[str, list[float]]) -> bool:
    """Keep the samples with the ratios of their medians."""

    def ratio(name: str) -> float:
        ours, theirs = samples[f"fleet_{name}"], samples[f"dockerspawner_{name}"]
        return statistics.median(ours) / statistics.median(theirs)

    return keep(
        "docker_ready",
        samples=samples,
        ratios={
            "ready_ratio": ratio("ready_seconds"),
            "hub_cpu_ratio": ratio("hub_cpu_seconds"),
            "stop_ratio": ratio("stop_seconds"),
        },
        targets=TARGETS,
        facts={
            "image": "present",
            "limits": "one core, 1 GiB",
            "server": "jupyterhub-singleuser of the test image, without JupyterLab",
            # Real-time priority is no choice here: such a process may not enter a
            # container's group.
            "niceness": os.nice(0),
        },
    )


if __name__ == "__main__":
    sys.exit(main())
