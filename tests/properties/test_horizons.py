"""The soonest machine is found without a look at each, and is what that would find."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given
from scheduling_builders import GIB, NOON, OPEN, a_catalog, a_machine, an_allocation

from fleet_contracts.workloads import DriverName
from fleet_hub.scheduling.choice import SLACK_SECONDS
from fleet_hub.scheduling.disks import by_disk
from fleet_hub.scheduling.entries import Entry
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.pools import Horizon, Pool
from fleet_hub.scheduling.profile import FOREVER, Claim
from fleet_hub.scheduling.trouble import Context
from fleet_hub.scheduling.vectors import Need


CORES = 4
ENDS = (None, NOON - 5, NOON + 60, NOON + 600, NOON + 900)
HELD = st.lists(st.tuples(st.integers(1, CORES), st.sampled_from(ENDS)), max_size=CORES)
CLAIMED = st.none() | st.tuples(
    st.integers(1, CORES), st.sampled_from([0.0, 60.0, 630.0]), st.just(700.0)
)
MACHINES = st.tuples(HELD, CLAIMED, st.sampled_from([100, 500]))
WANTED = st.tuples(
    st.integers(1, CORES), st.sampled_from([0, 300]), st.sampled_from([50.0, FOREVER])
)
LATER = st.lists(
    st.tuples(st.integers(0, 39), HELD, st.sampled_from([0.0, 70.0, 650.0])), max_size=5
)


def a_pool(machines: list[tuple[list[tuple[int, float | None]], object, int]]) -> Pool:
    """Return a pool of many machines, what is drawn repeated over them."""
    fleet = Fleet(Context(now=NOON, trust=a_catalog().trust))
    for number in range(40):
        held, claimed, disk = machines[number % len(machines)]
        name = f"m{number:02}"
        entry = fleet.put(
            a_machine(
                name,
                sharing=OPEN,
                cores_milli=CORES * 1000,
                disk_free_bytes=disk * GIB,
            )
        )
        hold(entry, held)
        if claimed is not None:
            cores, start, seconds = claimed  # type: ignore[misc] - as drawn
            amounts = (cores * 1000, 0, 0, 0)
            entry.claim("c", Claim(NOON + start, NOON + start + seconds, amounts))
    (group,) = fleet.groups.values()
    return group.pool


def hold(entry: Entry, held: list[tuple[int, float | None]]) -> None:
    """Let *entry* hold this and nothing else."""
    for name in list(entry.allocations):
        entry.release(name)
    for number, (cores, end) in enumerate(held):
        entry.hold(an_allocation(f"h{number}", cpu_milli=cores * 1000, ends_by=end))


def scanned(pool: Pool, horizon: Horizon, now: float) -> float:
    """Return the first start, by a look at every machine."""
    return min(
        entry.start(horizon.needs, horizon.seconds, now)
        for entry in pool.entries.values()
    )


def first_named(pool: Pool, horizon: Horizon, now: float, start: float) -> str:
    """Return the first machine by name that has room at *start*."""
    return min(
        name
        for name, entry in pool.entries.items()
        if entry.start(horizon.needs, horizon.seconds, now) == start
    )


@given(st.lists(MACHINES, min_size=1, max_size=5), WANTED, LATER)
def test_the_soonest_is_what_a_look_at_each_would_find(
    machines: list[tuple[list[tuple[int, float | None]], object, int]],
    wanted: tuple[int, int, float],
    later: list[tuple[int, list[tuple[int, float | None]], float]],
) -> None:
    """At first, and whatever changes afterwards, on many machines or few."""
    cores, disk, seconds = wanted
    pool = a_pool(machines)
    need = Need(DriverName.NATIVE, (cores * 1000, 0, disk * GIB, 0), 0, ())
    horizon, now = pool.horizon((need,), seconds), NOON
    for number, held, passed in [(0, None, 0.0), *later]:
        now += passed
        if held is not None:
            hold(pool.entries[f"m{number:02}"], held)
        found = horizon.soonest(now)
        first = scanned(pool, horizon, now)
        assert (FOREVER if found is None else found[0]) == first
        if found is not None:
            name = found[1]
            assert pool.entries[name].start((need,), seconds, now) == first
            # Later, of those with room now, whichever has had it for longest.
            is_first = held is None
            assert not is_first or name == first_named(pool, horizon, now, first)
            assert horizon.start_on(name, now) == first
            others = horizon.soonest(now, {name})
            assert others is None or (others[0] >= first and others[1] != name)


def test_a_first_question_looks_at_few_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of those that have no room now only the ones that could have it first."""
    pool = a_pool([([(4, NOON + 600)], None, 100), ([(4, NOON + 60)], None, 100)])
    open_pool = a_pool([([(4, NOON + 60)], None, 100), ([], None, 100)])
    looked: list[str] = []
    start = Entry.start

    def counting(entry: Entry, *asked: object) -> float:
        looked.append(entry.machine.name)
        return start(entry, *asked)  # type: ignore[arg-type] - handed on

    monkeypatch.setattr(Entry, "start", counting)
    need = Need(DriverName.NATIVE, (1000, 0, 0, 0), 0, ())
    assert pool.horizon((need,), 50.0).soonest(NOON) == (NOON + 90, "m01")
    assert looked == ["m01"]
    looked.clear()
    assert open_pool.horizon((need,), 50.0).soonest(NOON) == (NOON, "m01")
    assert looked == ["m01"]


def test_who_is_overdue_hides_no_end_that_comes() -> None:
    """On many machines: what an overdue holder has is given up, and the next end counts."""
    pool = a_pool([([(2, NOON - 600), (2, NOON + 60)], None, 100)])
    need = Need(DriverName.NATIVE, (2000, 0, 0, 0), 0, ())
    found = pool.horizon((need,), 50.0).soonest(NOON)
    assert found == (NOON + 60 + SLACK_SECONDS, "m00")
    whole = Need(DriverName.NATIVE, (4000, 0, 0, 0), 0, ())
    assert pool.horizon((whole,), 50.0).soonest(NOON) is None


def test_whatever_amount_of_disk_is_asked_for_the_answer_is_true() -> None:
    """Also of more amounts than are remembered."""
    pool = a_pool([([], None, 100), ([], None, 500)])
    ((bucket, names),) = pool.buckets.items()
    for gib in (*range(20, 600, 20), 100):
        found = pool.disks.of(bucket, names, gib * GIB)
        assert found == by_disk(pool.entries, names, gib * GIB)
        assert len(found.enough) == (0 if gib > 500 else 20 if gib > 100 else 40)


def test_where_all_room_is_promised_or_no_disk_is_free_the_first_time_is_found() -> (
    None
):
    """However much else is free: what comes first is told by name."""
    promised = a_pool([([], (CORES, 0.0, 700.0), 100)])
    need = Need(DriverName.NATIVE, (1000, 0, 0, 0), 0, ())
    assert promised.horizon((need,), 50.0).soonest(NOON) == (NOON + 700, "m00")
    small = a_pool([([], None, 100)])
    large = Need(DriverName.NATIVE, (1000, 0, 300 * GIB, 0), 0, ())
    assert small.horizon((large,), 50.0).soonest(NOON) is None
