"""Whoever needs much and cannot be told a time is kept one machine, and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest
from eight_gpus import (
    CATALOG,
    CLASSES,
    HOUR,
    a_box,
    a_full_box,
    a_line,
    ask,
    starts,
    why,
)
from scheduling_builders import (
    ALICE,
    BOB,
    BOTH_DRIVERS,
    GIB,
    NOON,
    OPEN,
    a_gpu_box,
    a_gpu_class,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.catalog import Quota
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName
from fleet_hub.scheduling.keeping import PATIENCE_SECONDS
from fleet_hub.scheduling.plan import plan
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import MachineState, Pin
from fleet_hub.scheduling.telling import waits


def a_kept_box(*more: MachineState, large: str = "all") -> Planner:
    """Return a fleet with one free GPU, kept for a large job that waits for seven."""
    planner = a_line(a_full_box(), *more)
    ask(planner, "large", large, principal=ALICE)
    planner.decide(NOON)
    planner.release("gpu-box", "gpu-box-0")
    planner.decide(NOON + PATIENCE_SECONDS)
    return planner


def test_until_it_has_waited_long_others_pass_it() -> None:
    """What ends soon clears by itself: no GPU is left idle for that."""
    planner = a_line(a_full_box())
    ask(planner, "large", "all", principal=ALICE)
    planner.decide(NOON)
    planner.release("gpu-box", "gpu-box-0")
    ask(planner, "small", "one-endless", asked_at=NOON + 1)
    assert starts(planner, PATIENCE_SECONDS - 1) == [("small", "gpu-box")]


def test_what_has_no_end_waits_behind_the_large_job_and_reads_it() -> None:
    """It would fit; nobody is told a time, for there is none."""
    planner = a_kept_box()
    ask(planner, "small", "one-endless")
    assert starts(planner, 700) == []
    found = why(planner, "small")
    assert found.reason is Reason.BEHIND
    assert [holder.workload for holder in found.holders] == ["large"]
    (large,) = waits(planner, ["large"])
    assert (large.no_later_than, large.reservation, large.broken) == (None, None, None)
    assert large.explanation.reason is Reason.GPU_BUSY


def test_what_has_an_end_runs_meanwhile() -> None:
    """It gives back what it uses before anybody could miss it for good."""
    planner = a_kept_box()
    ask(planner, "small", "one")
    assert starts(planner, 700) == [("small", "gpu-box")]


def test_the_large_job_starts_with_the_last_part_that_it_needs() -> None:
    """Each part that is given back stays with it."""
    planner = a_kept_box()
    ask(planner, "small", "one-endless")
    for number in range(1, 8):
        assert starts(planner, 700 + number) == []
        planner.release("gpu-box", f"gpu-box-{number}")
    assert starts(planner, 800) == [("large", "gpu-box")]


def test_another_machine_that_has_room_first_is_taken() -> None:
    """Then nothing is kept any more, and who waited behind it starts."""
    planner = a_kept_box()
    ask(planner, "small", "one-endless")
    planner.decide(NOON + 700)
    planner.put_machine(a_box("late"))
    assert starts(planner, 800) == [("large", "late"), ("small", "gpu-box")]


def test_one_of_each_kind_keeps_a_machine_the_first_in_the_line() -> None:
    """The second keeps none, though another machine is there; it is the next."""
    planner = a_kept_box(a_full_box("other"), large="all-endless")
    ask(planner, "second", "all-endless", asked_at=NOON + 1, principal=ALICE)
    planner.release("other", "other-0")
    planner.decide(NOON + 1300)
    ask(planner, "small", "one-endless")
    assert starts(planner, 1301) == [("small", "other")]
    for number in range(1, 8):
        planner.release("gpu-box", f"gpu-box-{number}")
    assert starts(planner, 1302) == [("large", "gpu-box")]
    # Now the second's turn has come: the next part that is given back is kept for it.
    planner.release("other", "other-1")
    ask(planner, "late", "one-endless")
    assert starts(planner, 1303) == []
    assert why(planner, "late").reason is Reason.BEHIND


def test_the_machine_that_lacks_least_is_kept() -> None:
    """Where another one gives more back meanwhile, that is kept from then on."""
    planner = a_kept_box(a_full_box("other"))
    for number in range(2):
        planner.release("other", f"other-{number}")
    assert starts(planner, 700) == []
    for number in range(2):
        ask(planner, f"small-{number}", "one-endless")
    assert starts(planner, 710) == [("small-0", "gpu-box")]
    assert why(planner, "small-1").reason is Reason.BEHIND


def test_a_machine_that_somebody_earlier_keeps_is_not_taken_for_lacking_less() -> None:
    """Whoever is behind stays with the machine that is kept for it."""
    planner = a_kept_box(a_full_box("other"))
    ask(planner, "later", "all-endless", asked_at=NOON + 1, principal=ALICE)
    planner.release("other", "other-0")
    planner.decide(NOON + 700)
    for number in range(1, 3):
        planner.release("gpu-box", f"gpu-box-{number}")
        planner.decide(NOON + 700 + number)
    for number in range(2):
        ask(planner, f"small-{number}", "one-endless")
    assert starts(planner, 710) == []


def test_who_comes_before_it_in_the_line_takes_the_kept_machine_over() -> None:
    """An urgent one of another kind: nobody was promised a time, so nothing breaks."""
    planner = a_kept_box()
    ask(
        planner, "urgent", "all-endless", profile="urgent", asked_at=NOON, principal=BOB
    )
    planner.decide(NOON + 700)
    planner.release("gpu-box", "gpu-box-1")
    planner.decide(NOON + 701)
    for number in range(2, 8):
        planner.release("gpu-box", f"gpu-box-{number}")
    assert starts(planner, 702) == [("urgent", "gpu-box")]
    (large,) = waits(planner, ["large"])
    assert large.broken is None


def test_a_small_urgent_job_passes_a_large_one_that_is_not() -> None:
    """Room is kept from those behind, and from nobody else."""
    planner = a_kept_box()
    ask(planner, "urgent", "one-endless", profile="urgent")
    assert starts(planner, 700) == [("urgent", "gpu-box")]
    # What comes back next is kept again.
    planner.release("gpu-box", "gpu-box-1")
    ask(planner, "small", "one-endless")
    assert starts(planner, 701) == []


def test_a_kept_machine_that_goes_away_is_kept_no_more() -> None:
    """Another one is, as soon as something is given back there."""
    planner = a_kept_box(a_full_box("other"))
    planner.put_machine(replace(a_full_box(), online=False, offline_since=NOON))
    planner.decide(NOON + 700)
    planner.release("other", "other-0")
    ask(planner, "small", "one-endless")
    assert starts(planner, 701) == []
    assert why(planner, "small").machine == "other"


def test_a_kept_machine_that_lost_a_gpu_for_good_is_kept_no_more() -> None:
    """It can never serve the large job now: small ones use what is free."""
    planner = a_kept_box(a_full_box("other"))
    ask(planner, "small", "one-endless")
    planner.decide(NOON + 700)
    smaller = a_full_box()
    facts = smaller.facts
    facts = facts.model_copy(update={"devices": facts.devices[:7]})
    held = tuple(
        item for item in smaller.held if item.workload not in {"gpu-box-0", "gpu-box-7"}
    )
    planner.put_machine(replace(smaller, facts=facts, held=held))
    assert starts(planner, 800) == [("small", "gpu-box")]


@pytest.mark.parametrize(("free_gib", "is_kept"), [(400, True), (50, False)])
def test_a_kept_machine_that_is_described_again_stays_kept_while_it_would_do(
    free_gib: int, *, is_kept: bool
) -> None:
    """Its disk has become fuller: as long as what is needed fits, nothing changes."""
    large = a_gpu_class("all", devices=8, disk_bytes=100 * GIB)
    classes = (CLASSES[0], large, *CLASSES[2:])
    catalog = CATALOG.model_copy(update={"classes": classes})
    planner = a_line(a_full_box(), catalog=catalog)
    ask(planner, "large", "all", asked_at=NOON - HOUR, principal=ALICE)
    planner.decide(NOON)
    planner.release("gpu-box", "gpu-box-0")
    planner.decide(NOON + 1)
    box = a_full_box()
    facts = box.facts.model_copy(update={"disk_free_bytes": free_gib * GIB})
    planner.put_machine(replace(box, facts=facts, held=box.held[1:]))
    ask(planner, "small", "one-endless")
    assert bool(starts(planner, 2)) is not is_kept


def test_what_is_promised_for_good_to_somebody_else_is_not_kept() -> None:
    """A promise of a time stands: the machine is not kept a second time."""
    held = tuple(
        an_allocation(
            f"held-{number}",
            devices=(f"GPU-gpu-box-{number}",),
            # The first one ends, the others nobody knows.
            ends_by=NOON + HOUR if number == 0 else None,
        )
        for number in range(8)
    )
    planner = a_line(a_box(held=held))
    ask(planner, "promised", "one-endless")
    planner.decide(NOON)
    (before,) = waits(planner, ["promised"])
    ask(planner, "large", "all", asked_at=NOON - HOUR, principal=ALICE)
    planner.decide(NOON + 1)
    (after,) = waits(planner, ["promised"])
    assert before.no_later_than is not None
    assert (after.no_later_than, after.broken) == (before.no_later_than, None)
    assert why(planner, "large").reason is Reason.GPU_BUSY


@pytest.mark.parametrize("changes", [{}, {"online": False, "offline_since": NOON}])
def test_a_restart_is_kept_the_machine_with_its_files_alone(
    changes: dict[str, object],
) -> None:
    """While that is there: no other machine would do."""
    pin = Pin(machine="gpu-box", driver=DriverName.NATIVE, class_name="all")
    planner = a_line(replace(a_full_box(), **changes), a_full_box("other"))
    planner.ask(
        a_waiting("back", class_name="all", asked_at=NOON - HOUR, pin=pin),
    )
    planner.decide(NOON)
    planner.release("gpu-box", "gpu-box-0")
    planner.release("other", "other-0")
    for number in range(3):
        ask(planner, f"small-{number}", "one-endless")
    started = starts(planner, 1)
    assert started == [("small-0", "other")]
    assert (why(planner, "small-1").reason is Reason.BEHIND) is not changes


def test_a_machine_that_refused_the_large_job_is_not_kept_for_it() -> None:
    """Nor one that it could never fit on."""
    planner = a_line(
        a_full_box(), a_gpu_box("small", sharing=OPEN, drivers=BOTH_DRIVERS)
    )
    ask(
        planner,
        "large",
        "all",
        asked_at=NOON - HOUR,
        principal=ALICE,
        rejected_by={"gpu-box": Reason.AGENT_REJECTED},
    )
    planner.decide(NOON)
    planner.release("gpu-box", "gpu-box-0")
    for number in range(2):
        ask(planner, f"small-{number}", "one-endless")
    assert sorted(machine for _, machine in starts(planner, 1)) == ["gpu-box", "small"]


def test_who_is_over_their_quota_keeps_no_machine() -> None:
    """It waits for itself; what is free goes to others."""
    catalog = CATALOG.model_copy(update={"quotas": (Quota(user="alice", devices=7),)})
    planner = a_line(a_full_box(), catalog=catalog)
    ask(planner, "mine", "one-endless", principal=ALICE)
    planner.decide(NOON)
    planner.release("gpu-box", "gpu-box-0")
    assert starts(planner, 1) == [("mine", "gpu-box")]
    planner.ask(a_waiting("large", class_name="all", asked_at=NOON - HOUR))
    planner.decide(NOON + 2)
    planner.release("gpu-box", "gpu-box-1")
    ask(planner, "small", "one-endless")
    assert starts(planner, 3) == [("small", "gpu-box")]


def test_a_plan_made_from_a_snapshot_keeps_what_was_waited_for() -> None:
    """Nobody passes because the controller was started anew."""
    waiting = (
        a_waiting("large", class_name="all", asked_at=NOON - HOUR),
        a_waiting("small", class_name="one-endless", principal=BOB, asked_at=NOON - 1),
    )
    decided = plan(
        a_snapshot(catalog=CATALOG, machines=(a_full_box(held=7),), waiting=waiting)
    )
    assert decided.placements == ()
    told = {item.workload: item.explanation.reason for item in decided.waits}
    assert told == {"large": Reason.GPU_BUSY, "small": Reason.BEHIND}
