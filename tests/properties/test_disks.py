"""What is remembered of disks is what looking at every machine anew would give."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings
from scheduling_builders import (
    GIB,
    NOON,
    a_catalog,
    a_machine,
    an_allocation,
)

from fleet_hub.scheduling.disks import by_disk
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import MachineState
from fleet_hub.scheduling.vectors import DISK


AMOUNTS = [0, 50, 100, 400]


@st.composite
def machines(draw: st.DrawFn) -> MachineState:
    """Return one of a few machines as it may be at some time."""
    size, held = draw(st.sampled_from(AMOUNTS)), draw(st.sampled_from(AMOUNTS))
    allocation = an_allocation(disk_bytes=held * GIB, cpu_milli=draw(st.just(500)))
    return a_machine(
        f"m{draw(st.integers(0, 5))}",
        disk_free_bytes=draw(st.sampled_from([None, size * GIB])),
        held=(allocation,) if draw(st.booleans()) else (),
        online=draw(st.sampled_from([True, True, True, False])),
    )


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(machines() | st.integers(0, 5), st.lists(st.sampled_from(AMOUNTS))),
        max_size=12,
    )
)
def test_what_is_remembered_of_disks_follows_every_change(
    steps: list[tuple[MachineState | int, list[int]]],
) -> None:
    """Machines come, fill, empty, get other disks, fall silent and go."""
    planner = Planner(a_catalog(), now=NOON)
    for step, asked in steps:
        if isinstance(step, MachineState):
            planner.put_machine(step)
        elif f"m{step}" in planner.fleet.entries:
            planner.remove_machine(f"m{step}")
        entries = planner.fleet.entries
        for group in planner.fleet.groups.values():
            disks = group.pool.disks
            for bucket, names in group.pool.buckets.items():
                for amount in (gib * GIB for gib in asked):
                    alike = [entries[name] for name in names]
                    assert disks.of(bucket, names, amount) == by_disk(
                        entries, names, amount
                    )
                    assert disks.count_free(bucket, names, amount) == sum(
                        entry.free[DISK] >= amount for entry in alike
                    )
                    assert disks.count_large(bucket, names, amount) == sum(
                        (entry.machine.facts.disk_free_bytes or 0) >= amount
                        for entry in alike
                    )
