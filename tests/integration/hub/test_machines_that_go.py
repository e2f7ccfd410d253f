"""A machine that was restarted, and one that never comes back: a whole fleet knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import other_boot
import psutil
import pytest
from fleet import Fleet, wait_until
from fleet_parts import NEEDS_HUB


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

ONE = {"profile": "one"}
SOON = """
c.JupyterHub.services[0]["command"] += ["--FleetService.silence_seconds=2"]
c.FleetSpawner.poll_interval = 1
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Return a fleet in which ada's server runs on her box."""
    with Fleet(folder=tmp_path, more_config=SOON) as running:
        running.add_machine("box", owner="ada")
        running.start_server("ada", ONE)
        yield running


def test_a_restarted_machine_says_so_and_takes_the_next_start(fleet: Fleet) -> None:
    """The server ended with it, is told so, and comes back when it is asked for."""
    machine = fleet.machines["box"]
    fleet.kill_agent()
    for process in _servers(fleet):
        process.kill()
    machine.program = (str(Path(other_boot.__file__)), "another-boot")
    fleet.start_agent()

    fleet.wait_state("ada", "failed")
    [failed] = (
        event for event in fleet.timeline("ada")["events"] if event["kind"] == "failed"
    )
    assert failed["explanation"]["reason"] == "machine_rebooted"
    assert fleet.status("ada")["holds"] is False
    wait_until(lambda: fleet.server("ada") is None, "the Hub knows it")
    fleet.start_server("ada", ONE)
    assert _told(fleet).count("machine_rebooted") == 1
    fleet.stop_server("ada")


def test_what_a_lost_machine_held_is_free_at_an_admins_word_alone(fleet: Fleet) -> None:
    """Silence frees nothing; its return brings nothing back to life."""
    fleet.kill_agent()
    fleet.wait_state("ada", "unknown")
    [server] = _servers(fleet)
    assert fleet.status("ada")["holds"], "silence frees nothing"

    fleet.controller("POST", "machines/box/lost")
    fleet.wait_state("ada", "failed", "stopped")
    assert fleet.status("ada")["holds"] is False
    assert "machine_lost" in _told(fleet)
    wait_until(lambda: fleet.server("ada") is None, "the Hub knows it")
    assert server.is_running(), "nobody could reach it"

    fleet.start_agent()
    wait_until(lambda: not _servers(fleet), "what it still ran is ended")
    assert fleet.status("ada")["state"] in {"failed", "stopped"}
    assert _told(fleet).count("machine_lost") == 1


def _servers(fleet: Fleet) -> list[psutil.Process]:
    """Return the servers that run on the box."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            inside = process.cwd().startswith(str(fleet.machines["box"].folder))
            if inside and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _told(fleet: Fleet) -> list[str]:
    """Return the reasons in ada's timeline, the oldest first."""
    events: list[dict[str, Any]] = fleet.timeline("ada")["events"]
    explained = [event.get("explanation") or {} for event in events]
    return [each["reason"] for each in explained if "reason" in each]
