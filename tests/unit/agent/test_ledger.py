"""The ledger keeps what it promised, whatever happens to the process or the file."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ledger_crashes
import pytest
from agent_support import AT, SECRET, a_spec

from fleet_agent.drivers.base import Handle
from fleet_agent.errors import AnotherAgentError, LedgerBrokenError, LedgerWriteError
from fleet_agent.ledger import Ledger
from fleet_agent.ledger_entry import Key, StopIntent
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress


KEY = Key("w1-1", 7)
BY_USER = Explanation(reason=Reason.STOPPED_BY_USER)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Return a new ledger."""
    opened = Ledger(tmp_path / "ledger.sqlite")
    yield opened
    opened.close()


def _accept(ledger: Ledger, key: Key = KEY) -> None:
    ledger.open(key, AgentEvent.ACCEPTED, at=AT, spec=a_spec())


def test_a_new_ledger_has_an_identity_that_outlives_the_process(tmp_path: Path) -> None:
    """The identity is made with the file, and only with the file."""
    first = Ledger(tmp_path / "ledger.sqlite")
    identity = first.ledger_id
    first.close()
    second = Ledger(tmp_path / "ledger.sqlite")
    assert second.ledger_id == identity
    second.close()
    other = Ledger(tmp_path / "other.sqlite")
    assert other.ledger_id != identity
    other.close()


def test_the_file_is_for_its_owner_alone(ledger: Ledger, tmp_path: Path) -> None:
    """Nobody else on the machine may read which workloads it runs."""
    assert (tmp_path / "ledger.sqlite").stat().st_mode & 0o777 == 0o600


def test_an_entry_comes_back_as_it_was_recorded(tmp_path: Path) -> None:
    """State, handle, address, end and stop decision survive the process."""
    path = tmp_path / "ledger.sqlite"
    first = Ledger(path)
    _accept(first)
    handle = Handle(allocation="w1-1", data={"pid": 5, "at": [1, 2]}, url="http://x:1")
    first.keep_handle(KEY, handle)
    first.report(KEY, AgentEvent.SERVING, at=AT, url="http://x:1", ends_at=12.5)
    first.ask_stop(KEY, StopIntent(explanation=BY_USER), at=AT)
    before = first.entries()
    first.close()
    second = Ledger(path)
    assert second.entries() == before
    (entry,) = before
    assert entry.handle == handle
    assert entry.event is AgentEvent.STOPPING
    assert entry.ends_at == 12.5
    assert entry.stop == StopIntent(explanation=BY_USER)
    assert entry.spec is not None
    assert entry.spec.owner == "olivia"
    second.close()


def test_no_secret_of_a_workload_reaches_the_disk(
    ledger: Ledger, tmp_path: Path
) -> None:
    """Environment and arguments are in no file of the ledger."""
    spec = a_spec(arguments=(f"--token={SECRET}",))
    ledger.open(KEY, AgentEvent.ACCEPTED, at=AT, spec=spec)
    files = list(tmp_path.iterdir())
    assert any(b"olivia" in file.read_bytes() for file in files)
    assert not any(SECRET.encode() in file.read_bytes() for file in files)


def test_reports_count_from_one_and_stay_until_acknowledged(ledger: Ledger) -> None:
    """Every report has the next number; an acknowledgement covers all up to it."""
    _accept(ledger)
    progress = Progress(step="install_packages", done=1, total=2)
    ledger.report(KEY, AgentEvent.PROGRESS, at=AT, progress=progress)
    ledger.report(KEY, AgentEvent.PREPARED, at=AT)
    assert [report.seq for report in ledger.unacknowledged()] == [1, 2, 3]
    ledger.acknowledge(KEY, 2, at=AT)
    (left,) = ledger.unacknowledged(KEY)
    assert left.event is AgentEvent.PREPARED
    ledger.acknowledge(KEY, 3, at=AT)
    ledger.acknowledge(KEY, 3, at=AT)
    assert ledger.unacknowledged() == ()


def test_progress_does_not_change_how_far_an_allocation_is(ledger: Ledger) -> None:
    """The inventory tells the state, not the last remark."""
    _accept(ledger)
    ledger.report(KEY, AgentEvent.PROGRESS, at=AT, progress=Progress(step="download"))
    (entry,) = ledger.entries()
    assert entry.as_inventory().event is AgentEvent.ACCEPTED
    assert entry.as_inventory().seq == 2


def test_a_second_stop_only_makes_the_end_faster(ledger: Ledger) -> None:
    """The first explanation stays, one report is made, and ``now`` is never undone."""
    _accept(ledger)
    first = ledger.ask_stop(KEY, StopIntent(explanation=BY_USER), at=AT)
    assert first is not None
    again = StopIntent(now=True, explanation=Explanation(reason=Reason.TIME_LIMIT))
    assert ledger.ask_stop(KEY, again, at=AT) is None
    assert ledger.ask_stop(KEY, StopIntent(), at=AT) is None
    (entry,) = ledger.entries()
    assert entry.stop == StopIntent(now=True, explanation=BY_USER)
    assert [report.event for report in ledger.unacknowledged()] == [
        AgentEvent.ACCEPTED,
        AgentEvent.STOPPING,
    ]


def test_only_what_is_over_can_be_forgotten(ledger: Ledger) -> None:
    """A controller that forgets too early does not make the machine forget."""
    _accept(ledger)
    assert ledger.forget(KEY, at=AT) is False
    ledger.report(KEY, AgentEvent.ENDED, at=AT)
    assert ledger.forget(Key("w1-1", 6), at=AT) is False
    assert ledger.forget(KEY, at=AT) is True
    assert ledger.forget(KEY, at=AT) is False
    assert ledger.entries() == ()
    assert ledger.unacknowledged() == ()


def test_a_forgotten_epoch_is_still_recognised(ledger: Ledger) -> None:
    """A launch that arrives late finds that its epoch has been here."""
    assert ledger.newest_epoch("w1-1") is None
    _accept(ledger)
    ledger.report(KEY, AgentEvent.ENDED, at=AT)
    ledger.forget(KEY, at=AT)
    assert ledger.newest_epoch("w1-1") == 7
    older = Key("w1-1", 3)
    _accept(ledger, older)
    ledger.report(older, AgentEvent.ENDED, at=AT)
    ledger.forget(older, at=AT)
    assert ledger.newest_epoch("w1-1") == 7
    assert ledger.highest_epoch == 7


def test_a_refusal_is_dropped_once_the_controller_knows_it(ledger: Ledger) -> None:
    """Refusals do not pile up, and their epoch cannot be launched later."""
    full = Explanation(reason=Reason.CPU_BUSY)
    ledger.open(KEY, AgentEvent.REJECTED, at=AT, explanation=full)
    (entry,) = ledger.entries()
    assert not entry.holds
    ledger.acknowledge(KEY, 1, at=AT)
    assert ledger.entries() == ()
    assert ledger.newest_epoch("w1-1") == 7


def test_a_second_process_is_refused(tmp_path: Path, ledger: Ledger) -> None:
    """The ledger has one writer, enforced by the file itself."""
    with pytest.raises(AnotherAgentError, match="another process"):
        Ledger(tmp_path / "ledger.sqlite")


@pytest.mark.parametrize("damage", ["emptied", "garbage", "torn", "foreign", "newer"])
def test_a_damaged_ledger_is_refused_and_left_alone(
    tmp_path: Path, damage: str
) -> None:
    """The agent says what to do, and neither repairs nor replaces the file."""
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    _accept(ledger)
    ledger.close()
    whole = path.read_bytes()
    if damage == "emptied":
        path.write_bytes(b"")
    elif damage == "garbage":
        path.write_bytes(b"\x00\xff" * 4096)
    elif damage == "torn":
        path.write_bytes(whole[:4096] + b"\xee" * (len(whole) - 4096))
    else:
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA user_version={0 if damage == 'foreign' else 99}")
        connection.close()
    damaged = path.read_bytes()
    with pytest.raises(LedgerBrokenError, match="Restore it from a copy"):
        Ledger(path)
    assert path.read_bytes() == damaged


def test_a_damaged_row_is_refused(tmp_path: Path) -> None:
    """A file that SQLite likes and we do not understand is damage too."""
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    _accept(ledger)
    ledger.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE allocations SET spec = '{\"owner\": 3}'")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerBrokenError, match="in a row"):
        Ledger(path)


def test_a_ledger_that_lost_its_main_file_is_not_begun_anew(tmp_path: Path) -> None:
    """A journal without its ledger means that the ledger was here."""
    (tmp_path / "ledger.sqlite-wal").write_bytes(b"x")
    with pytest.raises(LedgerBrokenError, match="it is gone"):
        Ledger(tmp_path / "ledger.sqlite")


def test_a_full_disk_changes_nothing_and_says_so(
    ledger: Ledger, tmp_path: Path
) -> None:
    """What could not be written is not there afterwards, and room makes it work."""
    _accept(ledger)
    before = ledger.entries(), ledger.unacknowledged()
    (pages,) = ledger._connection.execute("PRAGMA page_count").fetchone()
    ledger._connection.execute(f"PRAGMA max_page_count={pages}")
    large = Explanation(reason=Reason.START_FAILED, detail="x" * 100_000)
    with pytest.raises(LedgerWriteError, match="full"):
        ledger.report(KEY, AgentEvent.FAILED, at=AT, explanation=large)
    assert (ledger.entries(), ledger.unacknowledged()) == before
    ledger._connection.execute("PRAGMA max_page_count=100000")
    assert ledger.report(KEY, AgentEvent.FAILED, at=AT, explanation=large).seq == 2


def _states(folder: Path) -> list[object]:
    """Return what the ledger holds after each step of the scenario, from none on."""
    ledger = Ledger(folder / "reference.sqlite")
    states: list[object] = [_state(ledger)]
    for step in ledger_crashes.SCENARIO:
        step(ledger)
        states.append(_state(ledger))
    ledger.close()
    return states


def _state(ledger: Ledger) -> object:
    return (
        ledger.entries(),
        ledger.unacknowledged(),
        ledger.highest_epoch,
        ledger.newest_epoch(ledger_crashes.KEY.allocation),
        ledger.newest_epoch(ledger_crashes.REFUSED.allocation),
    )


@pytest.mark.timeout(300)
def test_a_kill_at_any_point_loses_nothing_and_leaves_nothing_half_done(
    tmp_path: Path,
) -> None:
    """Killed before any single statement, the ledger is at the step it had reached.

    Every step that had returned is in it, and the step under way is there as a whole
    or not at all.
    """
    states = _states(tmp_path)
    crashes = tmp_path / "crashes"
    crashes.mkdir()
    script = Path(ledger_crashes.__file__)
    finished = subprocess.run(
        [sys.executable, str(script), str(crashes)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    steps_done = [int(line) for line in finished.stdout.split()]
    assert len(steps_done) > 3 * len(states)
    assert set(steps_done) == set(range(len(states)))
    for fuse, done in enumerate(steps_done, start=1):
        ledger = Ledger(crashes / str(fuse) / "ledger.sqlite")
        assert _state(ledger) in states[done : done + 2], fuse
        ledger.close()
