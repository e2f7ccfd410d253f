"""A fleet that tests share is given to each of them as it was given to the first."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet import Fleet
from fleet_parts import NEEDS_HUB
from fleet_servers import begin
from shared_fleet import as_found, servers_of


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.timeout(300),
]
ALL, ONE = {"profile": "all"}, {"profile": "one"}


def test_whatever_a_test_leaves_behind_is_put_right(tmp_path: Path) -> None:
    """Servers, a place in the line, a drained machine, a changed agent, no Hub.

    What was there before the test stays.
    """
    with Fleet(folder=tmp_path) as fleet:
        box = fleet.add_machine("box", owner="ada")
        fleet.start_server("ada", ONE, "kept")
        with as_found(fleet):
            fleet.start_server("ada", ONE)
            begin(fleet, ALL, "waits")
            fleet.wait_state("ada", "queued", server="waits")
            fleet.controller("POST", "machines/box/drain")
            fleet.kill_agent()
            box.settings["simulation"] = {"fault": "start_fails"}
            fleet.kill_hub()

        assert servers_of(fleet) == [("ada", "kept")]
        assert fleet.status("ada", "kept")["state"] == "ready"
        assert fleet.told_of("box")["draining_by"] is None
        fleet.start_server("ada", ONE)
