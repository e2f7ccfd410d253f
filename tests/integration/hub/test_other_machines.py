"""Notebooks on machines other than the Hub's: each in a network namespace of its own.

The Hub, its proxy and the controller are in the test's own namespace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import namespaces
import pytest
import requests
from fleet import Fleet, wait_until
from namespaces import Lan, a_lan
from native_fleet import NATIVE_PATIENCE, build_environment, missing_for_native, stock
from notebook_client import Kernel, NotebookServer


pytestmark = [
    pytest.mark.hub,
    pytest.mark.slow,
    pytest.mark.timeout(300 + NATIVE_PATIENCE),
]

NO_NAMESPACES = namespaces.why_none()
TRUSTED = """
c.FleetService.trusted_networks = [{network!r}]
c.FleetService.silence_seconds = 12
"""


@pytest.fixture
def lan() -> Iterator[Lan]:
    """Return a network with two machines beside the Hub."""
    if NO_NAMESPACES:
        pytest.skip(NO_NAMESPACES)
    with a_lan() as network:
        network.add("a")
        network.add("b")
        yield network


@pytest.fixture
def fleet(lan: Lan, tmp_path: Path) -> Iterator[Fleet]:
    """Return a Hub in that network, with an agent on each machine."""
    more = TRUSTED.format(network=lan.network)
    with Fleet(folder=tmp_path, host=lan.hub, more_config=more) as fleet:
        fleet.join_machine("far-a", owner="ada", inside=lan.inside("a"))
        fleet.join_machine("far-b", owner="bob", inside=lan.inside("b"))
        yield fleet


def page(fleet: Fleet, user: str) -> str | None:
    """Return what the Hub's proxy shows of a user's notebook; None: nothing now."""
    try:
        answer = requests.get(f"{fleet.url}/user/{user}/", timeout=5)
    except requests.RequestException:
        return None
    return answer.text if answer.status_code == 200 else None


def test_notebooks_on_two_other_machines_and_one_cut_off_for_a_while(
    fleet: Fleet, lan: Lan
) -> None:
    """Reached through the proxy; kept while nobody hears of it; found again as it was."""
    for user, name in (("ada", "a"), ("bob", "b")):
        fleet.start_server(user, {"profile": "one"})
        url = urlsplit(fleet.status(user)["url"])
        assert url.hostname == lan.address(name)
        wait_until(
            lambda user=user: "Simulated notebook" in (page(fleet, user) or ""),
            f"{user}'s notebook is shown",
        )
    before = fleet.status("ada")

    lan.cut_off("a")
    unknown = fleet.wait_state("ada", "unknown")
    assert unknown["holds"], "silence frees nothing"
    assert page(fleet, "ada") is None
    wait_until(
        lambda: "Simulated notebook" in (page(fleet, "bob") or ""),
        "the other one goes on",
    )
    model = fleet.server("ada")
    assert model is not None, "the Hub keeps the server"

    lan.plug_in("a")
    after = fleet.wait_state("ada", "ready")
    assert after["url"] == before["url"]
    wait_until(lambda: page(fleet, "ada"), "ada's notebook is shown again")
    kinds = [event["kind"] for event in fleet.timeline("ada")["events"]]
    assert kinds.count("silent") == 1
    assert kinds.count("returned") == 1
    assert "stopped" not in kinds
    assert "failed" not in kinds
    for user in ("ada", "bob"):
        fleet.stop_server(user)
        fleet.wait_state(user, "stopped")


@pytest.mark.sandbox
def test_a_kernel_on_another_machine_computes_on_while_it_is_cut_off(
    lan: Lan, tmp_path: Path
) -> None:
    """A real one, through the Hub's proxy: nothing is ended, and it is told once."""
    if (reason := missing_for_native()) is not None:
        pytest.skip(reason)
    more = TRUSTED.format(network=lan.network)
    with Fleet(folder=tmp_path, host=lan.hub, catalog=None, more_config=more) as fleet:
        machine = fleet.join_machine(
            "far-a",
            owner="ada",
            inside=lan.inside("a"),
            settings={"drivers": ["native"], "stop_workloads_on_exit": True},
            start=False,
        )
        stock(machine)
        build_environment(machine)
        fleet.start_agent("far-a")
        fleet.wait_for_agent("far-a")
        fleet.ask("ada", {"profile": "cpu-small"})
        fleet.wait_ready("ada", patience=NATIVE_PATIENCE)
        before = fleet.status("ada")
        assert urlsplit(before["url"]).hostname == lan.address("a")

        asyncio.run(_compute_across_a_cut(fleet, lan))

        after = fleet.status("ada")
        assert (after["url"], after["holds"]) == (before["url"], True)
        kinds = [event["kind"] for event in fleet.timeline("ada")["events"]]
        assert [kind for kind in kinds if kind in AN_OUTCOME] == [
            *("ready", "silent", "returned")
        ]
        fleet.stop_server("ada")
        fleet.wait_state("ada", "stopped")


AN_OUTCOME = frozenset(
    {"ready", "silent", "returned", "stopping", "stopped", "failed", "lost"}
)
"""What can be told of a notebook that runs."""


async def _compute_across_a_cut(fleet: Fleet, lan: Lan) -> None:
    """Let a kernel count on, unheard; and ask it how far it has come."""
    server = NotebookServer(f"{fleet.url}/user/ada/", fleet.token_of("ada"))
    async with Kernel(server) as kernel:
        await kernel.run(
            "import pathlib, threading\n"
            "count, enough = 0, threading.Event()\n"
            "def go_on():\n"
            "    global count\n"
            "    while not enough.wait(0.05):\n"
            "        count += 1\n"
            "        pathlib.Path('count').write_text(str(count))\n"
            "threading.Thread(target=go_on).start()"
        )
        lan.cut_off("a")
        await asyncio.to_thread(fleet.wait_state, "ada", "unknown")
        assert page(fleet, "ada") is None
        unheard = _count(fleet)
        await asyncio.to_thread(
            wait_until, lambda: _count(fleet) > unheard, "it computes on"
        )
        lan.plug_in("a")
        await asyncio.to_thread(fleet.wait_state, "ada", "ready")
        await kernel.reconnect()
        told = await kernel.run("enough.set(); print(count)")
        assert int(told) > unheard


def _count(fleet: Fleet) -> int:
    """Return what the kernel has written on its own machine's disk."""
    notebooks = fleet.machines["far-a"].folder / "native/notebooks"
    [path] = notebooks.glob("*/count")
    return int(path.read_text() or 0)
