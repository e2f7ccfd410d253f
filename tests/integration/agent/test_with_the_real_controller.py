"""Agent, controller and Hub together: what an agent's death means to a user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet import Fleet, wait_until


pytestmark = [pytest.mark.hub, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Return a running Hub with its controller."""
    with Fleet(folder=tmp_path) as fleet:
        yield fleet


@pytest.mark.parametrize("step", ["preparing", "named", "answering"])
def test_a_start_goes_on_when_its_agent_is_killed(fleet: Fleet, step: str) -> None:
    """The user's one start becomes a ready server, wherever the agent was."""
    machine = fleet.add_machine("box", owner="ada", pause_at=step)
    fleet.ask("ada", {"profile": "one"})
    wait_until(lambda: _is_at(fleet, f"paused_{step}"), f"the start is at {step}")
    fleet.kill_agent("box")
    machine.settings["simulation"] = {}
    fleet.start_agent("box")
    model = fleet.wait_ready("ada")
    assert model["ready"]
    assert fleet.status("ada")["state"] == "ready"
    kinds = [event["kind"] for event in fleet.timeline("ada")["events"]]
    assert "failed" not in kinds
    fleet.stop_server("ada")
    assert not list((machine.folder / "simulation").glob("*"))


def test_a_running_server_does_not_notice_its_agents_death(fleet: Fleet) -> None:
    """It stays ready for the Hub, at the same address, and can be stopped."""
    fleet.add_machine("box", owner="ada")
    fleet.start_server("ada", {"profile": "one"})
    url = fleet.status("ada")["url"]
    fleet.restart_agent("box")
    status = fleet.wait_state("ada", "ready")
    assert status["url"] == url
    model = fleet.server("ada")
    assert model is not None
    assert model["ready"]
    fleet.stop_server("ada")
    fleet.wait_state("ada", "stopped")


def _is_at(fleet: Fleet, step: str) -> bool:
    events = fleet.timeline("ada")["events"]
    return any((event["progress"] or {}).get("step") == step for event in events)
