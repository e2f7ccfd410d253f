"""What is told of an allocation's progress, and when."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fleet_agent.ledger import Ledger
from fleet_agent.ledger_entry import Key
from fleet_agent.records import Records
from fleet_contracts.protocol import AgentEvent, Report
from fleet_contracts.timeline import Progress


pytestmark = pytest.mark.asyncio


def at(done: int) -> Progress:
    """Return how far a download is."""
    return Progress(step="download", done=done, total=100, unit="bytes")


async def test_the_last_word_of_a_step_that_stops_half_way_is_told(
    tmp_path: Path,
) -> None:
    """After a while, and without what it overtook."""
    told: asyncio.Queue[Report] = asyncio.Queue()
    ledger, key = Ledger(tmp_path / "ledger"), Key("a", 1)
    ledger.open(key, AgentEvent.ACCEPTED, at=datetime.now(UTC))
    records = Records(key, ledger=ledger, publish=told.put_nowait)

    for done in (0, 20, 50):
        records.progress(at(done))
    heard = [(await told.get()).progress for _ in range(2)]

    assert heard == [at(0), at(50)]
    ledger.close()


async def test_a_step_that_is_over_tells_nothing_more(tmp_path: Path) -> None:
    """What comes later is about something else."""
    told: list[Report] = []
    ledger, key = Ledger(tmp_path / "ledger"), Key("a", 1)
    ledger.open(key, AgentEvent.ACCEPTED, at=datetime.now(UTC))
    records = Records(key, ledger=ledger, publish=told.append)

    records.progress(at(0))
    records.progress(at(50))
    records.forget_progress()

    assert [report.progress for report in told] == [at(0)]
    assert records._withheld is None
    ledger.close()
