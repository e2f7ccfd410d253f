"""A real notebook, and those who wait behind it, when processes are killed.

Real Hub, proxy, controller, agent, environment, sandbox and kernel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from fleet import Fleet, wait_until
from fleet_parts import ALL_CORES, Machine
from fleet_servers import begin, holders, is_served, kinds
from native_fleet import (
    NATIVE_PATIENCE,
    NEEDS_NATIVE,
    add_native_machine,
    keep_environments,
    still_to_be_built,
)
from notebook_client import Kernel, NotebookServer
from shared_fleet import as_found


pytestmark = [
    *NEEDS_NATIVE,
    pytest.mark.timeout(NATIVE_PATIENCE + 120),
]
ALL = {"profile": "all"}
CATALOG = f"""
classes:
  - {{name: whole, title: Whole, description: All., cpu: {ALL_CORES}, memory: 1G}}
runtimes:
  - {{name: jupyter, title: Jupyter, accelerators: [cpu], driver_refs: {{native: jupyter}}}}
profiles:
  - {{name: all, title: All, description: All., classes: [whole], runtimes: [jupyter]}}
"""
"""One notebook at a time."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet of one machine of ada's."""
    folder = tmp_path_factory.mktemp("fleet")
    with Fleet(folder=folder, catalog=CATALOG) as started:
        add_native_machine(started, owner="ada")
        started.wait_for_agent("box")
        yield started


@pytest.fixture
def running(shared: Fleet) -> Iterator[Fleet]:
    """That fleet, as each test finds it."""
    with as_found(shared) as fleet:
        yield fleet


@pytest.fixture
def machine(running: Fleet) -> Machine:
    """The machine."""
    return running.machines["box"]


def kill_hub(running: Fleet) -> Callable[[], None]:
    """Kill the Hub, and with it its controller; return what starts them again."""
    running.kill_hub()
    return running.start_hub


def kill_controller(running: Fleet) -> Callable[[], None]:
    """Kill the controller, which its supervisor starts again; return what waits for it."""
    running.kill_controller()
    return running.wait_for_controller


def kill_agent(running: Fleet) -> Callable[[], None]:
    """Kill the agent; return what starts it again."""
    running.kill_agent()
    return running.start_agent


def sandboxes(machine: Machine) -> list[str]:
    """Return what the agent has made for notebooks that run or are not cleared away."""
    runs = machine.folder / "native/runs"
    return sorted(path.name for path in runs.iterdir()) if runs.is_dir() else []


def test_a_notebook_that_is_being_prepared_outlives_controller_and_hub(
    running: Fleet, machine: Machine
) -> None:
    """Both are killed, one after the other: it is prepared once, and comes up."""
    running.kill_agent()
    with still_to_be_built(machine):
        running.start_agent()
        begin(running, ALL)
        generation = running.wait_state("ada", "preparing")["generation"]
        kill_controller(running)()
        running.wait_state("ada", "preparing")
        kill_hub(running)()
        assert running.wait_state("ada", "preparing")["holds"]

    running.wait_ready("ada", patience=NATIVE_PATIENCE)
    keep_environments(machine)
    wait_until(lambda: is_served(running), "the route is there")
    assert running.status("ada")["generation"] == generation
    assert kinds(running).count("preparing") == 1
    assert len(sandboxes(machine)) == 1
    running.stop_server("ada")
    assert sandboxes(machine) == []


@pytest.mark.asyncio
async def test_a_running_notebook_and_its_line_outlive_every_kill(
    running: Fleet, machine: Machine
) -> None:
    """Of the Hub, the controller and the agent, one after the other.

    Its kernel goes on all the time, it is found again, the line keeps its order, and the
    machine is held once, by one after the other, and by nobody in the end.
    """
    url = await asyncio.to_thread(start_one_and_let_two_wait, running)
    alone = sandboxes(machine)
    assert len(alone) == 1
    # Directly: the proxy goes with the Hub, and comes back with it.
    async with Kernel(NotebookServer(url, running.token_of("ada"))) as kernel:
        await kernel.run("kills = 0")
        for number, kill in enumerate((kill_hub, kill_controller, kill_agent), 1):
            start_again = await asyncio.to_thread(kill, running)
            assert await kernel.run("kills += 1; print(kills)") == f"{number}\n"
            await asyncio.to_thread(start_again)
            await asyncio.to_thread(expect_it_as_it_was, running, url)
            assert sandboxes(machine) == alone

    for left, following in (("", "first"), ("first", "second")):
        await asyncio.to_thread(running.stop_server, "ada", left)
        await asyncio.to_thread(running.wait_ready, "ada", following)
        assert holders(running) == [following]
        assert len(sandboxes(machine)) == 1
    await asyncio.to_thread(running.stop_server, "ada", "second")
    assert holders(running) == []
    assert sandboxes(machine) == []


def start_one_and_let_two_wait(running: Fleet) -> str:
    """Return where the one that runs answers, without the proxy."""
    assert running.ask("ada", ALL).status_code in {201, 202}
    running.wait_ready("ada", patience=NATIVE_PATIENCE)
    for name in ("first", "second"):
        begin(running, ALL, name)
        running.wait_state("ada", "queued", server=name)
    return str(running.status("ada")["url"])


def expect_it_as_it_was(running: Fleet, url: str) -> None:
    """The same server runs, the same two wait, and everybody knows."""
    waiting = ("first", "second")
    wait_until(
        lambda: [running.status("ada", name)["position"] for name in waiting] == [0, 1],
        "the line is as it was",
    )
    running.wait_state("ada", "ready")
    assert running.status("ada")["url"] == url
    wait_until(lambda: is_served(running), "the proxy leads to it")
    running.wait_ready("ada")
    assert kinds(running).count("starting") == 1
    assert holders(running) == [""]
