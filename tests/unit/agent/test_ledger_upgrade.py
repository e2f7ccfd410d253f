"""An agent that was upgraded finds what an earlier one has written.

``tests/data/ledgers/first.sql`` was written by the first agent that ran anything, and is
never changed: a version that cannot read it needs a migration, not another file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_support import AT

from fleet_agent.drivers.native.records import Record
from fleet_agent.ledger import Ledger
from fleet_agent.ledger_entry import Key
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Accelerator, DriverName


FIRST = Path(__file__).parents[2] / "data/ledgers/first.sql"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Return the ledger of the first agent, opened by this one."""
    path = tmp_path / "ledger.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(FIRST.read_text("utf-8"))
    connection.close()
    opened = Ledger(path)
    yield opened
    opened.close()


def test_what_runs_is_known_with_all_that_is_needed_to_find_it(ledger: Ledger) -> None:
    """Its state, its address, its end, what it holds and how it is undone."""
    entry = ledger.entry(Key("serving-native", 1))

    assert entry is not None
    assert (entry.event, entry.seq, entry.holds) == (AgentEvent.SERVING, 4, True)
    assert entry.url == "http://127.0.0.1:5000/user/olivia/"
    assert entry.ends_at == 1795000000.5
    assert entry.spec is not None
    assert (entry.spec.owner, entry.spec.notebook) == ("olivia", "3-17")
    assert entry.spec.resources.memory_bytes == 1 << 30
    assert entry.spec.runtime.driver is DriverName.NATIVE
    assert entry.handle is not None
    assert entry.handle.url == entry.url
    record = Record.from_json(entry.handle.data)
    assert record.supervisor is not None
    assert record.first is not None
    assert (record.supervisor.pid, record.first.pid) == (41, 42)
    assert record.environment == "e" * 32


def test_what_was_decided_and_what_failed_is_known_as_it_was(ledger: Ledger) -> None:
    """A stop that was asked for goes on; an end keeps its reason."""
    entries = {entry.key.allocation: entry for entry in ledger.entries()}

    assert set(entries) == {
        *("serving-native", "stopping", "failed", "rejected", "unseen"),
    }
    assert entries["stopping"].stop is not None
    assert entries["stopping"].stop.explanation == Explanation(
        reason=Reason.STOPPED_BY_USER
    )
    failed = entries["failed"]
    assert failed.explanation == Explanation(
        reason=Reason.SERVER_EXITED, detail="exit status 3"
    )
    assert failed.spec is not None
    assert failed.spec.runtime.accelerator is Accelerator.CUDA
    assert failed.spec.resources.devices == ("GPU-1",)
    assert entries["unseen"].spec is None
    assert ledger.highest_epoch == 6
    assert ledger.newest_epoch("forgotten") == 6


def test_what_was_not_confirmed_is_sent_and_the_ledger_goes_on(ledger: Ledger) -> None:
    """The next report follows the last one of the earlier agent."""
    key = Key("serving-native", 1)
    assert [report.seq for report in ledger.unacknowledged(key)] == [3, 4]
    assert len(ledger.unacknowledged()) == 9

    report = ledger.report(key, AgentEvent.ENDED, at=AT)

    assert report.seq == 5
    assert ledger.forget(key, at=AT)
