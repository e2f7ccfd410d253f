"""A Mac of the real fleet runs one notebook at a time, and says why.

Real Hub, proxy, controller, agent and notebook servers; the Mac's answers are recorded
ones, and its sandbox tool runs the child and enforces nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import simulated_mac
from fake_mac_kernel import FakeMacKernel, a_python_with_torch
from fleet import Fleet, Machine, wait_until
from fleet_parts import NEEDS_HUB
from native_fleet import NATIVE_PATIENCE, add_native_machine, keep_environments
from seatbelt_language import Profile
from shared_fleet import as_found


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.slow,
    pytest.mark.timeout(NATIVE_PATIENCE + 180),
]

CATALOG = """
classes:
  - {name: small, title: Small, description: "Little.", cpu: 1, memory: 1G}
  - name: metal
    title: Metal
    description: "The Mac's GPU."
    cpu: 1
    memory: 1G
    accelerator: mps
runtimes:
  - name: jupyter
    title: JupyterLab
    accelerators: [cpu, mps]
    driver_refs: {native: jupyter}
profiles:
  - {name: small, title: Small, description: "CPU.", classes: [small], runtimes: [jupyter]}
  - {name: metal, title: Metal, description: "GPU.", classes: [metal], runtimes: [jupyter]}
"""
MORE = """
c.JupyterHub.allow_named_servers = True
c.FleetSpawner.args = ["--allow-root"]
"""


FIRST_BUILD = "24F74"


def update(tool: FakeMacKernel, build: str) -> None:
    """Let this build of macOS run."""
    tool.program.with_name("os-build").write_text(f"{build}\n")


@dataclass
class Mac:
    """A fleet whose one machine is ada's Mac."""

    fleet: Fleet
    machine: Machine
    tool: FakeMacKernel

    def servers(self) -> list[dict[str, Any]]:
        """Return the notebook servers that were started, the oldest first."""
        return [run for run in self.tool.runs() if "bootstrap" in run["argv"][-1]]

    @contextmanager
    def lent(self, **settings: Any) -> Iterator[None]:
        """Let the agent run with *settings* meanwhile, on a Mac that may change."""
        before = dict(self.machine.settings)
        self._restart(before | settings)
        try:
            yield
        finally:
            self.tool.behave({})
            update(self.tool, FIRST_BUILD)
            self._restart(before)

    def _restart(self, settings: dict[str, Any]) -> None:
        self.fleet.kill_agent("mac")
        self.fleet.wait_until_away("mac")
        self.machine.settings = settings
        self.fleet.start_agent("mac")
        self.fleet.wait_for_agent("mac")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mac]:
    """Return the fleet, with nothing running yet."""
    folder = tmp_path_factory.mktemp("fleet")
    tool = FakeMacKernel.make(folder)
    update(tool, FIRST_BUILD)
    program = (str(Path(simulated_mac.__file__)), str(tool.program))
    with Fleet(folder=folder, catalog=CATALOG, more_config=MORE) as fleet:
        fleet.token_of("ada")
        machine = add_native_machine(fleet, "mac", owner="ada", program=program)
        fleet.wait_for_agent("mac")
        yield Mac(fleet, machine, tool)


@pytest.fixture
def mac(shared: Mac) -> Iterator[Mac]:
    """Return that fleet, as each test finds it."""
    with as_found(shared.fleet):
        yield shared


def test_programs_on_a_mac_run_one_at_a_time_whatever_they_asked_for(mac: Mac) -> None:
    """A CPU notebook holds the GPU; the next one waits for it by name, then starts."""
    fleet = mac.fleet
    fleet.ask("ada", {"profile": "small"})
    fleet.wait_ready("ada", patience=NATIVE_PATIENCE)
    keep_environments(mac.machine)
    assert _told(fleet, "", "metal_reserved")

    fleet.ask("ada", {"profile": "metal"}, "second")
    wait_until(
        lambda: _told(fleet, "second", "metal_busy"),
        "the second waits for the Mac's GPU",
    )
    waiting = fleet.status("ada", "second")
    assert waiting["state"] == "queued"
    assert waiting["headline"] == (
        "You are next. On mac, the Mac's GPU is taken, and programs on a Mac cannot be "
        "kept from it, so they run one at a time; held by you (Small) with no known end."
    )

    fleet.stop_server("ada")
    fleet.wait_ready("ada", "second")
    first, second = mac.servers()[-2:]
    fleet.stop_server("ada", "second")

    # Only the class that asked for the GPU is given it; both held it.
    client = "AGXDeviceUserClient"
    assert not Profile(first["profile"]).allows("iokit-open", name=client)
    assert Profile(second["profile"]).allows("iokit-open", name=client)


def test_behind_a_fence_that_was_seen_to_hold_programs_run_beside_each_other(
    mac: Mac,
) -> None:
    """With its owner's consent; an update of macOS ends it until it was seen again."""
    fleet = mac.fleet
    torch = a_python_with_torch(fleet.folder / "torch")
    with mac.lent(share_metal=True, fence_python=str(torch)):
        _share(mac, fleet)


def _share(mac: Mac, fleet: Fleet) -> None:
    wait_until(lambda: _fence(fleet)["holds"], "the fence was seen to hold")

    # The one computes on the GPU, and the other is kept from it.
    fleet.ask("ada", {"profile": "metal"}, "second")
    fleet.wait_ready("ada", "second", patience=NATIVE_PATIENCE)
    fleet.start_server("ada", {"profile": "small"})
    assert _told(fleet, "", "metal_shared")
    assert not _told(fleet, "", "metal_busy")
    both = [fleet.status("ada", server)["state"] for server in ("", "second")]
    assert both == ["ready", "ready"]
    fleet.stop_server("ada", "second")

    # With the update the GPU is no longer out of reach, and nobody knows that yet.
    mac.tool.behave({"torch fenced": "reached"})
    update(mac.tool, "24G84")
    fleet.controller("POST", "machines/mac/redetect")
    wait_until(
        lambda: _fence(fleet)["reason"] == "gpu_in_use", "nobody knows of the new build"
    )
    fleet.ask("ada", {"profile": "metal"}, "second")
    wait_until(
        lambda: _told(fleet, "second", "metal_busy"),
        "what was started behind the old fence holds the GPU",
    )
    assert fleet.status("ada")["state"] == "ready"

    # Its end makes room: for the probe first, and for who waited after it.
    fleet.stop_server("ada")
    fleet.wait_ready("ada", "second")
    assert _fence(fleet)["reason"] == "gpu_reached"
    fleet.ask("ada", {"profile": "small"})
    wait_until(lambda: _told(fleet, "", "metal_busy"), "nothing is shared any more")
    # It leaves the line before the other gives the GPU back.
    fleet.stop_server("ada")
    fleet.stop_server("ada", "second")


def _fence(fleet: Fleet) -> dict[str, Any]:
    """Return what the controller knows of the Mac's fence."""
    [machine] = fleet.controller("GET", "machines")["machines"]
    fence: dict[str, Any] = machine["capabilities"]["metal_fence"] or {}
    return {"holds": None, "reason": None} | fence


def _told(fleet: Fleet, server: str, reason: str) -> bool:
    """Whether the timeline gives *reason* for the latest start of *server*."""
    events: list[dict[str, Any]] = fleet.timeline("ada", server)["events"]
    latest = events[-1]["generation"]
    return any(
        (event.get("explanation") or {}).get("reason") == reason
        for event in events
        if event["generation"] == latest
    )
