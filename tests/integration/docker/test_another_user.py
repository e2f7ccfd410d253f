"""Somebody who does not own the machine gets a notebook in a container on it.

Real Hub, proxy, controller, agent, engine and JupyterHub's own single-user server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
import requests
from docker.errors import ImageNotFound
from docker_engine import PrivateEngine
from docker_fleet import CATALOG, HUB, NOT_YET, add_docker_machine
from fleet import Fleet, wait_until
from fleet_parts import NEEDS_HUB
from image_registry import Registry, image_registry
from notebook_client import Kernel, NotebookServer
from patience import PATIENCE
from shared_fleet import as_found


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def registry(shared_engine: PrivateEngine) -> Iterator[Registry]:
    """A registry of which the engine has nothing yet, and nothing afterwards."""
    with image_registry() as running:
        yield running
        with shared_engine.client() as client, suppress(ImageNotFound):
            client.remove_image(running.ref("stuck"), force=True)


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory,
    shared_engine: PrivateEngine,
    registry: Registry,
) -> Iterator[Fleet]:
    """Ada's machine with an engine, lent to everybody."""
    folder = tmp_path_factory.mktemp("fleet")
    catalog = CATALOG.replace(NOT_YET, registry.ref("stuck"))
    with Fleet(folder=folder, catalog=catalog, more_config=HUB) as running:
        add_docker_machine(running, shared_engine, owner="ada")
        yield running


@pytest.fixture(scope="module")
def bob(shared: Fleet) -> Iterator[str]:
    """Bob, who owns no machine and has a notebook in a container of ada's."""
    shared.start_server("bob", {"profile": "lab"})
    yield "bob"
    shared.stop_server("bob")


@pytest.fixture
def fleet(shared: Fleet) -> Iterator[Fleet]:
    """That fleet, as each test finds it; bob's notebook stays."""
    with as_found(shared) as running:
        yield running


def visit(fleet: Fleet, visitor: str, path: str) -> requests.Response:
    """Ask bob's server through the proxy with all that *visitor* may do."""
    return requests.get(
        f"{fleet.url}/user/bob/{path}",
        headers={"Authorization": f"token {fleet.token_of(visitor)}"},
        timeout=PATIENCE,
    )


def container_of(client: Any) -> dict[str, Any]:
    """Return the one container that runs."""
    [found] = client.containers()
    container: dict[str, Any] = client.inspect_container(found["Id"])
    return container


def test_it_is_reached_through_the_hubs_proxy(fleet: Fleet, bob: str) -> None:
    """By its user, and by nobody whom the Hub would not let in.

    The server in the container asks the Hub about both.
    """
    assert visit(fleet, bob, "api/status").status_code == 200
    assert visit(fleet, "eve", "api/status").status_code == 403


def test_a_cell_runs_in_it(fleet: Fleet, bob: str) -> None:
    """As its user, in the notebook folder, with the image's own Python paths."""
    code = (
        "import os, pathlib;"
        "print(os.getuid(), pathlib.Path.cwd(), os.environ.get('PYTHONPATH'))"
    )

    told = run_cell(fleet, bob, code)

    uid, folder, python_path = told.split()
    assert int(uid) >= 1_901_000_000
    assert folder == "/home/jovyan"
    assert python_path == "None"


def test_its_timeline_tells_the_steps_and_no_image(fleet: Fleet, bob: str) -> None:
    """What is done is told, and the name of what is run is nobody's business."""
    timeline = fleet.timeline(bob)
    steps = [(event["progress"] or {}).get("step") for event in timeline["events"]]

    assert "start_server" in steps
    assert "fleet-test" not in json.dumps(timeline)


def test_the_server_started_without_what_it_never_uses(
    fleet: Fleet, bob: str, client: Any
) -> None:
    """The image has a JupyterHub that the short start was tried with."""
    log = client.logs(container_of(client)["Id"]).decode()

    assert "Jupyter Server" in log
    assert "no quick start" not in log


def test_the_container_carries_its_allocation(
    fleet: Fleet, bob: str, client: Any
) -> None:
    """Whoever looks at the engine sees what a container is for."""
    labels = container_of(client)["Config"]["Labels"]

    assert labels["org.jupyter.fleet.allocation"]
    assert int(labels["org.jupyter.fleet.epoch"]) >= 1


def test_it_does_not_notice_its_agents_death(fleet: Fleet, bob: str) -> None:
    """The next agent finds it by what the first one wrote down."""
    before = fleet.status(bob)["url"]
    fleet.kill_agent("box")
    assert visit(fleet, bob, "api/status").status_code == 200

    fleet.wait_until_away("box")
    fleet.start_agent("box")
    fleet.wait_for_agent("box")

    assert fleet.wait_state(bob, "ready")["url"] == before
    assert visit(fleet, bob, "api/status").status_code == 200


def test_files_outlive_the_container(fleet: Fleet, bob: str, client: Any) -> None:
    """A stop leaves no container, and the next start finds the folder as it was."""
    run_cell(fleet, bob, "open('kept.txt', 'w').write('still here')")
    fleet.stop_server(bob)
    left = client.containers(all=True)

    fleet.start_server(bob, {"profile": "lab"})
    told = run_cell(fleet, bob, "print(open('kept.txt').read())")

    assert left == []
    assert told == "still here"


def test_a_pull_is_told_in_the_timeline(fleet: Fleet, registry: Registry) -> None:
    """In bytes, while it is under way; its user sees how far it is."""
    with ThreadPoolExecutor() as threads:
        starting = threads.submit(fleet.start_server, "carol", {"profile": "fetched"})
        told = wait_until(lambda: pulled_bytes(fleet, "carol"), "half is fetched")
        registry.go_on.set()
        starting.result()
    fleet.stop_server("carol")

    assert 0 < told < len(registry.layer)


def pulled_bytes(fleet: Fleet, user: str) -> int:
    """Return how much of an image was fetched so far, as *user* is told."""
    with suppress(LookupError, requests.HTTPError):
        for event in reversed(fleet.timeline(user)["events"]):
            progress = event["progress"] or {}
            if progress.get("step") == "pull_image":
                assert progress["unit"] == "bytes"
                return int(progress["done"])
    return 0


def test_an_image_that_cannot_be_had_fails_in_seconds(fleet: Fleet) -> None:
    """With a sentence that says whom to ask, and without the image's name."""
    answer = fleet.ask("dave", {"profile": "lost"})
    status = fleet.wait_state("dave", "failed")
    told = json.dumps([status, fleet.timeline("dave"), answer.text])

    assert "registry of the runtime's image cannot be reached" in told
    assert "secret-name" not in told


def run_cell(fleet: Fleet, user: str, code: str) -> str:
    """Return what *code* prints in a new kernel of *user*'s notebook."""

    async def run() -> str:
        server = NotebookServer(f"{fleet.url}/user/{user}/", fleet.token_of(user))
        async with Kernel(server) as kernel:
            return (await kernel.run(code)).strip()

    return asyncio.run(run())
