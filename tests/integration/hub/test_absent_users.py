"""A server that came up when its user was away: given back, unless somebody comes."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet import Fleet, wait_until
from fleet_parts import ALL_CORES, NEEDS_HUB, PATIENCE
from fleet_servers import kinds
from native_fleet import (
    NATIVE_PATIENCE,
    add_native_machine,
    keep_environments,
    missing_for_native,
)


pytestmark = [
    *NEEDS_HUB,
]
ALL = {"profile": "all"}
NATIVE = f"""
classes:
  - {{name: whole, title: Whole, description: All., cpu: {ALL_CORES}, memory: 1G}}
runtimes:
  - {{name: jupyter, title: Jupyter, accelerators: [cpu], driver_refs: {{native: jupyter}}}}
profiles:
  - {{name: all, title: All, description: All., classes: [whole], runtimes: [jupyter]}}
"""


def opened_within(seconds: float) -> str:
    """Return a configuration with this window, of which the Hub speaks each second."""
    return f"""
c.FleetService.open_seconds = {seconds}
c.FleetSpawner.poll_interval = 1
"""


@pytest.mark.timeout(300)
def test_a_server_that_nobody_opens_is_given_back_to_the_next(tmp_path: Path) -> None:
    """It ends with the reason, for the Hub as well, and who waits behind it starts."""
    with Fleet(
        folder=tmp_path,
        queue_hold=1,
        slow_spawn_timeout=PATIENCE,
        more_config=opened_within(4),
    ) as running:
        running.add_machine("box", owner="ada")
        running.start_server("ada", ALL)
        for name in ("first", "second"):
            assert running.ask("ada", ALL, name).status_code == 503
        running.stop_server("ada")

        # Whoever looks late sees what was, and not what came after it.
        running.wait_state("ada", "stopped", server="first")
        assert "ready" in kinds(running, "first")
        last = running.timeline("ada", "first")["events"][-1]
        assert last["kind"] == "stopped"
        assert last["explanation"]["reason"] == "not_claimed"
        wait_until(lambda: "ready" in kinds(running, "second"), "the next one started")
        wait_until(lambda: running.server("ada", "first") is None, "the Hub knows it")


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.timeout(NATIVE_PATIENCE + 120)
def test_one_visit_in_a_browser_keeps_it(tmp_path: Path) -> None:
    """The log-in at the real server is known to the Hub at once."""
    if (reason := missing_for_native()) is not None:
        pytest.skip(reason)
    with Fleet(
        folder=tmp_path,
        queue_hold=1,
        slow_spawn_timeout=NATIVE_PATIENCE,
        catalog=NATIVE,
        more_config=opened_within(NATIVE_PATIENCE),
    ) as running:
        machine = add_native_machine(running, owner="ada")
        running.wait_for_agent("box")
        assert running.ask("ada", ALL).status_code in {201, 202}
        running.wait_ready("ada", patience=NATIVE_PATIENCE)
        keep_environments(machine)
        assert running.ask("ada", ALL, "lab").status_code == 503
        running.stop_server("ada")
        running.wait_ready("ada", "lab")
        assert running.status("ada", "lab")["unopened_since"] is not None

        page = running.log_in("ada").get(f"{running.url}/user/ada/lab/lab", timeout=60)
        assert page.status_code == 200, page.text
        wait_until(
            lambda: running.status("ada", "lab")["unopened_since"] is None,
            "the visit is known",
        )
        assert running.status("ada", "lab")["state"] == "ready"
