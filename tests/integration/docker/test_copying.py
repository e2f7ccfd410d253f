"""Files that go from a sandbox into a container and back, with a real engine.

A real Hub with its proxy and controller, two real agents and two real notebooks.  Each
machine can run one class that the other cannot, and one driver only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from copied_files import content, fill, generation, ways
from docker_engine import PrivateEngine
from docker_fleet import HUB, docker_machine_settings
from docker_images import INTERPRETER, NOTEBOOK
from fleet import Fleet, wait_until
from native_fleet import (
    NATIVE_PATIENCE,
    NEEDS_NATIVE,
    add_native_machine,
    keep_environments,
)


pytestmark = [
    *NEEDS_NATIVE,
    pytest.mark.timeout(600),
]

CATALOG = f"""
classes:
  - {{name: roomy, title: Roomy, description: "Much memory.", cpu: 0.1, memory: 1200M}}
  - {{name: quick, title: Quick, description: "Many cores.", cpu: 2, memory: 800M}}
runtimes:
  - name: jupyter
    title: JupyterLab
    accelerators: [cpu]
    driver_refs: {{native: jupyter, docker: "{NOTEBOOK}"}}
profiles:
  - {{name: lab, title: Lab, description: "CPU.", classes: [roomy, quick], runtimes: [jupyter]}}
"""
MORE = HUB + '\nc.FleetSpawner.args = ["--allow-root"]\n'


@pytest.fixture
def fleet(
    tmp_path_factory: pytest.TempPathFactory, shared_engine: PrivateEngine
) -> Iterator[Fleet]:
    """Ada's machine with the sandbox, and her other one with an engine."""
    folder = tmp_path_factory.mktemp("fleet")
    with Fleet(folder=folder, catalog=CATALOG, more_config=MORE) as running:
        running.token_of("ada")
        near = add_native_machine(
            running, "near", standby=False, max_cpu="1", max_memory="2G"
        )
        running.wait_for_agent("near")
        start(running, "roomy")
        keep_environments(near)
        running.stop_server("ada")
        settings = docker_machine_settings(shared_engine)
        settings |= {"max_cpu": "2", "max_memory": "1G"}
        running.add_agent("box", owner="ada", settings=settings)
        wait_until(lambda: "copy_files" in ways(running, "quick"), "copying is offered")
        yield running


def start(fleet: Fleet, class_name: str, files: str | None = None) -> None:
    """Ask for ada's server by REST, and return once it answers."""
    options = {"profile": "lab", "class": class_name}
    answer = fleet.ask("ada", options | ({"files": files} if files else {}))
    assert answer.status_code in {201, 202}, answer.text
    fleet.wait_ready("ada", patience=NATIVE_PATIENCE)


def folder_of(fleet: Fleet, machine: str, driver: str) -> Path:
    """Return the newest notebook folder of a machine; nothing else of a copy is there."""
    notebooks = fleet.machines[machine].folder / driver / "notebooks"
    assert not list(notebooks.glob(".arriv*/*"))
    return max(notebooks.glob("[!.]*"), key=generation)


def in_container(client: Any, code: str) -> str:
    """Return what a Python program prints beside the one server, as its user."""
    [found] = client.containers()
    command = [f"{INTERPRETER}/bin/python3", "-I", "-c", code]
    told: bytes = client.exec_start(client.exec_create(found["Id"], command)["Id"])
    return told.decode().strip()


def test_files_go_into_a_container_and_back(fleet: Fleet, client: Any) -> None:
    """Whole, and its user's at either end: read and written from inside, then copied on."""
    near = folder_of(fleet, "near", "native")
    fill(near)
    before = content(near)

    start(fleet, "quick", "copy")
    box = folder_of(fleet, "box", "docker")
    assert content(box) == content(near) == before
    assert box.stat().st_uid != near.stat().st_uid
    assert {path.lstat().st_uid for path in box.rglob("*")} == {box.stat().st_uid}
    told = in_container(
        client,
        "import os, pathlib; home = pathlib.Path.home();"
        "(home / 'work' / 'made inside').write_text('new');"
        "print(os.getuid(), home, len((home / 'work/data.bin').read_bytes()),"
        "(home / 'work/link').resolve())",
    )
    uid = box.stat().st_uid
    assert told == f"{uid} /home/jovyan {3 << 20} /home/jovyan/work/deep"
    fleet.stop_server("ada")

    there = content(box)
    assert there.keys() - before.keys() == {"made inside"}
    start(fleet, "roomy", "copy")
    back = folder_of(fleet, "near", "native")
    assert back != near
    assert content(back) == content(box) == there
    assert {path.lstat().st_uid for path in back.rglob("*")} == {near.stat().st_uid}
    fleet.stop_server("ada")
