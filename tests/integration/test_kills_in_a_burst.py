"""kill -9 of the controller in a burst, and a clock that jumps: nothing twice, nothing lost.

A real process on a real store is killed as each of its transactions begins and as each
is about to be committed; the next one finds the store and the machines as they are.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import controller_crashes
import pytest
from controller_aftermath import Aftermath
from controller_crashes import HOUR
from fleet_builders import a_principal

from fleet_contracts.allocations import State
from fleet_contracts.workloads import ServerKey
from fleet_hub.controller.ticking import tick


pytestmark = [pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A folder for each moment at which the controller was killed."""
    root = tmp_path_factory.mktemp("crashes")
    script = Path(controller_crashes.__file__)
    subprocess.run(
        [sys.executable, str(script), str(root)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return sorted(root.iterdir(), key=lambda folder: int(folder.name))


def test_a_kill_at_any_commit_of_a_burst_holds_nothing_twice_and_loses_nobody(
    crashes: list[Path], tmp_path: Path
) -> None:
    """Whoever was told that they wait has a place; what runs is known and holds.

    Then everybody gets their turn: no allocation is lost, and none is made twice.
    """
    assert len(crashes) > 80
    for folder in crashes:
        after = Aftermath(shutil.copytree(folder, tmp_path / folder.name))
        by_key = after.fleet.core.model.by_key
        for server in after.seen.asked:
            assert by_key(ServerKey(user_id=1, server_id=server)) is not None, folder
        after.check()
        after.connect()
        after.finish()
        left = [
            record
            for record in after.fleet.core.model.workloads.values()
            if record.state not in {State.STOPPED, State.FAILED}
        ]
        assert left == [], folder
        assert after.fleet.core.model.issued == {}
        after.fleet.store.close()


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_a_clock_that_jumps_at_the_restart_changes_nothing_of_that(
    crashes: list[Path], tmp_path: Path, jump: int
) -> None:
    """An hour to and fro, before the machines are heard and after."""
    for folder in crashes[:: max(1, len(crashes) // 12)]:
        after = Aftermath(shutil.copytree(folder, tmp_path / folder.name))
        after.fleet.clock.advance(jump)
        tick(after.fleet.core)
        after.connect()
        after.check()
        after.fleet.clock.advance(-2 * jump)
        tick(after.fleet.core)
        after.finish()
        assert after.fleet.core.model.issued == {}
        # Nothing is owed to anybody: a new user gets all of it.
        new = a_principal()
        record = after.fleet.ask(99, principal=new, class_name="whole")
        assert record.assignment is not None
        after.fleet.store.close()
