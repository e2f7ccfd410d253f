"""Who has held how much: from placed to released, whatever happens between."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import pytest
from controller_catalogs import a_catalog
from fleet_builders import NOON, a_principal
from fleet_controller import Fleet
from hypothesis import given

from fleet_contracts.protocol import AgentEvent
from fleet_hub.accounts import UsageDocument, as_csv
from fleet_hub.adapters.memory_store import MemoryStore
from fleet_hub.admission import ServerKey
from fleet_hub.controller import asking, stopping
from fleet_hub.controller.accounting import usage
from fleet_hub.controller.ports import Change
from fleet_hub.controller.spans import Held, Span, moment_of
from fleet_hub.periods import PeriodError, moment, month, month_before
from fleet_hub.service.metrics import Metrics


def seconds_of(fleet: Fleet, **period: Any) -> dict[tuple[str, str], float]:
    """Return the allocation-seconds by user and class."""
    accounts = usage(fleet.core, **period).accounts
    return {(one.user, one.class_name): one.seconds for one in accounts}


def ended(fleet: Fleet, record: Any) -> None:
    """Have the machine say that nothing of *record* runs any more."""
    assignment = fleet.get(record).assignment
    assert assignment is not None
    fleet.agents[assignment.machine].report(assignment.allocation, AgentEvent.ENDED)


def test_time_counts_from_placed_until_the_machine_confirmed_the_end() -> None:
    """Preparing and stopping count; waiting does not; what runs counts until now."""
    fleet = Fleet()
    agent = fleet.machine(cores=4)
    first = fleet.ask(1, class_name="whole")
    second = fleet.ask(2, class_name="small")
    fleet.clock.advance(10.25)
    assert seconds_of(fleet) == {("alice", "whole"): 10.25}
    assert first.assignment is not None
    agent.serve(first.assignment.allocation)
    fleet.clock.advance(100)
    stopping.stop(fleet.core, fleet.get(first), by="user")
    fleet.clock.advance(5)
    ended(fleet, first)
    fleet.cycle()
    fleet.clock.advance(1000)
    assert fleet.get(second).assignment is not None
    assert seconds_of(fleet) == {("alice", "whole"): 115.25, ("alice", "small"): 1000.0}
    (account,) = [
        one for one in usage(fleet.core).accounts if one.class_name == "whole"
    ]
    assert account.core_seconds == 4 * 115.25
    assert account.memory_gib_seconds == 115.25
    assert (account.device_seconds, account.allocations) == (0, 1)


def test_a_restart_neither_loses_nor_repeats_a_moment() -> None:
    """The next process counts on where the last one was killed."""
    fleet = Fleet()
    fleet.machine()
    record = fleet.ask(1)
    fleet.clock.advance(60)
    fleet = fleet.restarted()
    fleet.clock.advance(60)
    assert seconds_of(fleet) == {("alice", "small"): 120.0}
    fleet.agents["box"].connect()
    stopping.stop(fleet.core, fleet.get(record), by="user")
    ended(fleet, record)
    fleet.clock.advance(60)
    for again in (fleet, fleet.restarted()):
        assert seconds_of(again) == {("alice", "small"): 120.0}


def test_a_place_that_was_taken_back_was_held_all_the_same() -> None:
    """A rejected launch and the next try are two allocations of one workload."""
    fleet = Fleet()
    agent = fleet.machine()
    record = fleet.ask(1)
    fleet.clock.advance(7)
    assert record.assignment is not None
    agent.report(record.assignment.allocation, AgentEvent.ACCEPTED)
    agent.report(record.assignment.allocation, AgentEvent.REJECTED)
    fleet.clock.advance(90)
    assert seconds_of(fleet) == {("alice", "small"): 7.0}


def test_a_machine_that_is_declared_lost_stops_the_count() -> None:
    """It is a release like any other."""
    fleet = Fleet()
    fleet.machine()
    fleet.ask(1)
    fleet.clock.advance(50)
    stopping.declare_lost(fleet.core, "box")
    fleet.clock.advance(50)
    assert seconds_of(fleet) == {("alice", "small"): 50.0}


def test_a_deleted_server_leaves_its_account() -> None:
    """The workload is forgotten, what it held is not."""
    fleet = Fleet()
    fleet.machine()
    record = fleet.ask(1)
    fleet.clock.advance(30)
    stopping.retire(fleet.core, fleet.get(record))
    ended(fleet, record)
    assert record.id not in fleet.core.model.workloads
    assert seconds_of(fleet) == {("alice", "small"): 30.0}


def one_held(fleet: Fleet, server: int, **changes: Any) -> None:
    """Let somebody hold something for half a minute, and delete the server if asked."""
    retired = changes.pop("retired", False)
    record = fleet.ask(server, **changes)
    fleet.clock.advance(30)
    if retired:
        stopping.retire(fleet.core, fleet.get(record))
    else:
        stopping.stop(fleet.core, fleet.get(record), by="user")
    ended(fleet, record)


def test_accounts_follow_a_user_to_another_name_and_no_namesake_reads_them() -> None:
    """Alice became ada; another person is alice now, and was never asked about."""
    fleet = Fleet()
    fleet.machine()
    one_held(fleet, 1)
    one_held(fleet, 2, principal=a_principal("ada"))
    assert seconds_of(fleet, user="ada") == {("ada", "small"): 60.0}
    assert seconds_of(fleet, user="alice") == {}
    fleet.machine("other")
    one_held(fleet, 3, principal=a_principal("alice", 7))
    assert seconds_of(fleet, user="alice") == {("alice", "small"): 30.0}
    assert seconds_of(fleet.restarted(), user="ada") == {("ada", "small"): 60.0}


def test_nobody_reads_what_somebody_of_the_same_name_held_before() -> None:
    """Their server and they were deleted, and the name was given to somebody else."""
    fleet = Fleet()
    fleet.machine()
    one_held(fleet, 1, retired=True)
    fleet.machine("other")
    one_held(fleet, 2, principal=a_principal("alice", 7))
    assert seconds_of(fleet, user="alice") == {("alice", "small"): 30.0}
    everybody = [(one.user_id, one.seconds) for one in usage(fleet.core).accounts]
    assert everybody == [(1, 30.0), (7, 30.0)]


def test_an_id_that_is_given_out_again_moves_no_account() -> None:
    """Alice and her server are gone, if not confirmed yet; zoe has her id now."""
    fleet = Fleet()
    agent = fleet.machine()
    one_held(fleet, 1)
    record = fleet.ask(2)
    fleet.clock.advance(30)
    agent.disconnect()
    for server in (1, 2):
        key = ServerKey(user_id=1, server_id=server)
        old = fleet.core.model.by_key(key)
        assert old is not None
        stopping.retire(fleet.core, old)
    fleet.ask(3, principal=a_principal("zoe"))
    assert fleet.get(record).principal.name == "alice"
    assert seconds_of(fleet, user="zoe") == {}


def test_a_clock_that_goes_back_takes_nothing_from_anybody() -> None:
    """The span is empty, never negative."""
    fleet = Fleet()
    fleet.machine()
    record = fleet.ask(1)
    fleet.clock.advance(-3600)
    assert seconds_of(fleet, since=NOON - timedelta(days=1)) == {}
    metrics = Metrics(fleet.core)
    stopping.stop(fleet.core, fleet.get(record), by="user")
    ended(fleet, record)
    fleet.clock.advance(7200)
    assert seconds_of(fleet) == {("alice", "small"): 0.0}
    # A counter cannot go down, and a release must not fail because of it.
    held = 'jupyterhub_fleet_allocation_seconds_total{class="small"} 0.0'
    assert held in metrics.text().decode()


def test_a_period_counts_what_lies_within_it() -> None:
    """An allocation that spans the boundary is divided, to the microsecond."""
    fleet = Fleet()
    fleet.machine()
    record = fleet.ask(1)
    fleet.clock.advance(100)
    stopping.stop(fleet.core, fleet.get(record), by="user")
    ended(fleet, record)
    fleet.clock.advance(100)
    middle = NOON + timedelta(seconds=40, microseconds=1)
    before = seconds_of(fleet, since=NOON - timedelta(hours=1), until=middle)
    after = seconds_of(fleet, since=middle)
    assert before == {("alice", "small"): 40.000001}
    assert after == {("alice", "small"): 59.999999}
    assert seconds_of(fleet, since=NOON + timedelta(seconds=100)) == {}
    assert seconds_of(fleet, until=NOON) == {}


def test_what_a_mac_keeps_from_others_is_not_charged_to_a_cpu_class() -> None:
    """A CPU class is a CPU allocation, the Metal reservation notwithstanding."""
    fleet = Fleet(catalog=a_catalog())
    agent = fleet.machine()
    record = fleet.ask(1)
    assert record.assignment is not None
    from dataclasses import replace  # noqa: PLC0415

    held = record.assignment.resources.model_copy(update={"metal": True})
    with fleet.core.transaction() as tx:
        tx.put(replace(record, assignment=replace(record.assignment, resources=held)))
    agent.serve(record.assignment.allocation)
    fleet.clock.advance(60)
    (account,) = usage(fleet.core).accounts
    assert (account.class_name, account.device_seconds) == ("small", 0.0)
    assert account.core_seconds == 60.0


def test_one_user_is_told_of_themselves_alone() -> None:
    """Others' accounts are for admins."""
    fleet = Fleet()
    fleet.machine(cores=8, owner="alice")
    fleet.machine("bax", cores=8, owner="bob")
    fleet.ask(1)
    fleet.ask(2, principal=a_principal("bob", 2))
    fleet.clock.advance(5)
    assert set(seconds_of(fleet)) == {("alice", "small"), ("bob", "small")}
    assert set(seconds_of(fleet, user="bob")) == {("bob", "small")}


def test_a_stored_decision_that_failed_is_not_charged() -> None:
    """Nothing was placed, so nothing was held."""
    fleet = Fleet()
    fleet.machine()
    from fleet_controller import an_ask  # noqa: PLC0415

    asking.ask(fleet.core, an_ask(1))
    assert seconds_of(fleet) == {}


SPANS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 10**6), st.integers(0, 10**6)),
    max_size=8,
)


@given(SPANS, st.lists(st.integers(0, 2 * 10**6), max_size=4))
def test_periods_side_by_side_add_up_to_the_whole(
    spans: list[tuple[str, int, int]], cuts: list[int]
) -> None:
    """However time is cut, nothing is lost at the seams and nothing is counted twice."""
    store = MemoryStore()
    store.commit(
        Change(
            spans=[
                Span(
                    allocation=str(number),
                    held=Held(
                        user_id=1,
                        user=user,
                        class_name="c",
                        devices=0,
                        cpu_milli=1,
                        memory_bytes=1,
                    ),
                    profile="p",
                    machine="m",
                    began=began,
                    ended=began + length,
                )
                for number, (user, began, length) in enumerate(spans)
            ]
        )
    )
    edges = sorted({-1, *cuts, 3 * 10**6})
    parts = [
        total.microseconds
        for since, until in pairwise(edges)
        for total in store.totals(since, until)
    ]
    assert sum(parts) == sum(length for _, _, length in spans)


def test_csv_is_exact_and_runs_nothing_in_a_spreadsheet() -> None:
    """Seconds without rounding, and names that look like formulas stay text."""
    document = UsageDocument.model_validate(
        {
            "as_of": NOON,
            "since": NOON,
            "until": NOON,
            "accounts": [
                {
                    "user": '=cmd|" /C calc"!A1',
                    "user_id": 1,
                    "class": "gpu",
                    "allocations": 2,
                    "seconds": 3600.000001,
                    "device_seconds": 0.0,
                    "core_seconds": 7200.5,
                    "memory_gib_seconds": 1e9,
                }
            ],
        }
    )
    heading, row = as_csv(document).splitlines()
    assert heading.startswith("since,until,user,user_id,class,allocations,seconds,")
    assert "\"'=cmd|" in row
    assert row.endswith(",1,gpu,2,3600.000001,0,7200.5,1000000000")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T12:30", datetime(2026, 11, 1, 12, 30, tzinfo=UTC)),
        ("2026-11-01T12:30+02:00", datetime(2026, 11, 1, 10, 30, tzinfo=UTC)),
        ("90m", NOON - timedelta(minutes=90)),
        ("1d12h", NOON - timedelta(hours=36)),
        ("90s", NOON - timedelta(seconds=90)),
    ],
)
def test_a_moment_is_a_date_a_time_or_a_while_ago(
    text: str, expected: datetime
) -> None:
    """In UTC where no zone is named."""
    assert moment(text, NOON) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "2026-13-01", "-7d", "7 moons", "99999999d"),
        # A year is rather meant than so many seconds ago.
        *("2026", "0", "2026.5"),
        *("0001-01-01T00:00+14:00", "9999-12-31T23:00-14:00"),
    ],
)
def test_what_names_no_moment_says_how_to_write_one(text: str) -> None:
    """Never a guess."""
    with pytest.raises(PeriodError, match="7d"):
        moment(text, NOON)


def test_a_month_ends_where_the_next_one_begins() -> None:
    """The year's end included."""
    assert month("2026-12") == (
        datetime(2026, 12, 1, tzinfo=UTC),
        datetime(2027, 1, 1, tzinfo=UTC),
    )
    with pytest.raises(PeriodError):
        month("12-2026")
    with pytest.raises(PeriodError):
        month("9999-12")


def test_a_period_without_a_beginning_is_the_month_that_its_end_lies_in() -> None:
    """The first of a month ends the one before it."""
    december = datetime(2026, 12, 1, tzinfo=UTC)
    november = datetime(2026, 11, 1, tzinfo=UTC)
    assert month_before(december) == november
    assert month_before(december - timedelta(microseconds=1)) == november
    assert month_before(december + timedelta(microseconds=1)) == december


def test_an_instant_survives_its_way_into_the_table() -> None:
    """Microseconds are whole, so nothing is rounded."""
    from fleet_hub.controller.spans import micros  # noqa: PLC0415

    late = datetime(2026, 11, 1, 23, 59, 59, 999_999, tzinfo=UTC)
    assert moment_of(micros(late)) == late
