"""What is held is told as held, by whom and until when, however little of it is used."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fleet_builders import NOON
from fleet_controller import allocation_of
from fleet_pictures import GIB
from scenario_fleets import a_box, another, the_catalog
from scheduling_builders import a_class, a_gpu_class
from told_everywhere import (
    answer_to,
    timeline_to,
    told,
    what_if,
)

from fleet_contracts.capabilities import Observed, Usage
from fleet_contracts.protocol import Heartbeat
from fleet_contracts.reasons import Reason


HOUR = 3600.0


def test_memory_that_nothing_uses_is_told_as_held_with_who_holds_it() -> None:
    """What a tool shows as free, what is reserved, and each reservation."""
    fleet = a_box()
    another(fleet, 1, "most")
    fleet.agents["box"].say(
        Heartbeat(
            sent_at=fleet.clock.now(),
            usage=Usage(
                observed=Observed(source="psutil", observed_at=fleet.clock.now()),
                memory_available_bytes=31 * GIB,
            ).model_dump(mode="json"),
        )
    )
    record = another(fleet, 2, "most")
    why = told(fleet, record)
    assert (why.reason, why.unit) == (Reason.MEMORY_BUSY, "bytes")
    assert (why.requested, why.free, why.capacity) == (30 * GIB, 2 * GIB, 32 * GIB)
    assert why.detail is None
    small = another(fleet, 3, "most")
    fleet.catalogs.catalog = the_catalog(
        a_class("cpu"), a_class("most", memory_bytes=16 * GIB)
    )
    fleet.core.want_cycle()
    fleet.cycle()
    why = told(fleet, small)
    assert why.detail == (
        "at least 28 GiB of it is not in use, and is held all the same"
    )
    assert [(one.owner, one.amount) for one in why.holders] == [("alice", 30 * GIB)]


@pytest.mark.parametrize(
    ("class_name", "reason", "numbers"),
    [
        ("cores", Reason.CPU_BUSY, (6000, 2000, 8000)),
        ("space", Reason.DISK_BUSY, (400 * GIB, 100 * GIB, 500 * GIB)),
        ("gpus", Reason.GPU_BUSY, (2, 0, 2)),
    ],
)
def test_cores_disk_and_gpus_that_rest_are_told_with_their_reservations(
    class_name: str, reason: Reason, numbers: tuple[int, int, int]
) -> None:
    """Nothing of it may be used at the moment; all of it is somebody's."""
    fleet = a_box(
        the_catalog(
            a_class("cores", cpu_milli=6000),
            a_class("space", disk_bytes=400 * GIB),
            a_gpu_class("gpus", devices=2),
        )
    )
    holder = another(fleet, 1, class_name)
    fleet.agents["box"].serve(allocation_of(holder))
    why = told(fleet, another(fleet, 2, class_name))
    assert why.reason is reason
    assert (why.requested, why.free, why.capacity) == numbers
    [held] = why.holders
    assert (held.workload, held.owner, held.amount) == (holder.id, "alice", numbers[0])
    assert held.since == NOON + timedelta(seconds=HOUR)


def test_a_gpu_notebook_without_a_free_gpu_is_told_at_once_by_whom_and_until_when() -> (
    None
):
    """With the very answer to the ask, or before it: nobody waits for a time-out."""
    fleet = a_box()
    for server in (1, 2):
        holder = another(fleet, server, "gpu")
        fleet.agents["box"].serve(allocation_of(holder))
    before = what_if(fleet, "alice", "lab", "gpu")
    record = another(fleet, 3, "gpu")
    asked_at = record.asked_at
    for answer in (before, answer_to(fleet, record)):
        assert answer.as_of == asked_at
        assert answer.why is not None
        assert answer.why.explanation.reason is Reason.GPU_BUSY
        assert len(answer.why.explanation.holders) == 2
        assert all(one.ends_by for one in answer.why.explanation.holders)
        assert answer.no_later_than is not None
    first = timeline_to(fleet, record).events
    assert [event.at for event in first] == [asked_at] * len(first)
