"""Where a container's own things are, also when several are made at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.common.accounts import Identities, UidRange
from fleet_agent.drivers.docker.places import Places


def test_an_agent_has_one_mark_however_many_ask_at_once(tmp_path: Path) -> None:
    """Containers with another mark would be a stranger's."""
    places = Places(tmp_path / "state", None)
    with ThreadPoolExecutor(8) as threads:
        marks = set(threads.map(lambda _: places.mark(), range(32)))

    assert len(marks) == 1
    assert Places(tmp_path / "state", None).mark() in marks


def test_two_agents_have_two_marks(tmp_path: Path) -> None:
    """They may share an engine."""
    assert Places(tmp_path / "a", None).mark() != Places(tmp_path / "b", None).mark()


@pytest.mark.parametrize("run", ["", "../x", "f" * 23, "F" * 24])
def test_no_handle_leads_out_of_the_runs(tmp_path: Path, run: str) -> None:
    """Its folder is removed at the end, whoever wrote the handle."""
    with pytest.raises(ValueError, match="names no run folder"):
        Places(tmp_path, None).run(run)


def test_uids_of_the_two_drivers_do_not_meet(tmp_path: Path) -> None:
    """An owner's native notebook and another's container never share one."""
    native = Identities(tmp_path / "native", UidRange()).account(1, "ada")
    container = Identities(tmp_path / "docker", UidRange(first=1_901_000_000)).account(
        2, "bea"
    )

    assert native.uid < 1_901_000_000 <= container.uid


def test_a_copy_comes_to_where_the_container_will_look_for_it(tmp_path: Path) -> None:
    """The same folder, of the same account, under a name that leads nowhere else."""
    places = Places(tmp_path, UidRange(first=1_901_000_000))
    folder = places.notebook("ada-1", 1, "ada")
    assert folder.path == places.notebooks / "ada-1"
    assert folder.uid == folder.gid == 1_901_000_000
    with pytest.raises(DriverError):
        places.notebook("../ada-1", 1, "ada")
