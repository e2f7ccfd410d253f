"""Why it waits: codes with numbers and holders, for each kind of "no" as users met it.

The kinds come from reports about other schedulers, which gave one text for all.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from scheduling_builders import (
    BOB,
    GIB,
    NOON,
    OPEN,
    a_catalog,
    a_class,
    a_gpu,
    a_gpu_box,
    a_gpu_class,
    a_machine,
    a_profile,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.catalog import Quota, Relation
from fleet_contracts.reasons import Explanation, Reason, ReasonKind
from fleet_contracts.sentences import sentence
from fleet_contracts.workloads import DriverName, Principal
from fleet_hub.scheduling.decisions import Placement, Plan, Verdict
from fleet_hub.scheduling.explain import explain
from fleet_hub.scheduling.plan import plan
from fleet_hub.scheduling.snapshot import Sharing, Snapshot


SIMULATED = {DriverName.SIMULATION: True}


def told(snapshot: Snapshot) -> Explanation:
    """Return the one headline that *snapshot*'s only waiting workload gets."""
    decided = plan(snapshot)
    answers = [item.explanation for item in (*decided.refusals, *decided.waits)]
    assert len(answers) == 1
    return answers[0]


def verdict(snapshot: Snapshot) -> Verdict:
    """Return everything about the workload called ``asked``."""
    return explain(snapshot, "asked")


def test_what_waits_and_what_can_never_run_differ_in_kind_and_words() -> None:
    """One waits for a holder, one is impossible: two states, two sentences."""
    catalog = a_catalog(classes=(a_gpu_class(), a_gpu_class("five", devices=5)))
    held = an_allocation(devices=("GPU-gpu-box-0",))
    decided = plan(
        a_snapshot(
            catalog=catalog,
            machines=(a_gpu_box(held=(held,)),),
            waiting=(
                a_waiting("busy", class_name="gpu"),
                a_waiting("never", class_name="five"),
            ),
        )
    )
    (wait,), (refusal,) = decided.waits, decided.refusals
    assert (wait.workload, wait.explanation.kind) == ("busy", ReasonKind.BUSY)
    assert (refusal.workload, refusal.explanation.kind) == ("never", ReasonKind.NEVER)
    assert sentence(wait.explanation) != sentence(refusal.explanation)


def test_a_full_fleet_is_busy_and_not_missing() -> None:
    """The only machine is taken: the user is told of a holder, not of no machines."""
    held = an_allocation(devices=("GPU-gpu-box-0",))
    found = told(
        a_snapshot(
            machines=(a_gpu_box(held=(held,)),),
            waiting=(a_waiting(class_name="gpu"),),
        )
    )
    assert found.reason is Reason.GPU_BUSY


def test_an_idle_fleet_without_the_accelerator_is_a_mismatch_and_not_full() -> None:
    """Idle CPU machines do not look like a fleet at capacity."""
    found = told(
        a_snapshot(
            machines=(a_machine("a"), a_machine("b")),
            waiting=(a_waiting(class_name="gpu"),),
        )
    )
    assert (found.reason, found.kind) == (Reason.ACCELERATOR_MISMATCH, ReasonKind.NEVER)


@pytest.mark.parametrize(
    ("admin", "owner", "reason"),
    [
        (Relation.GUEST, Relation.MEMBER, Reason.OWNER_FORBIDS),
        (Relation.OWNER, Relation.GUEST, Reason.NOT_IN_AUDIENCE),
    ],
)
def test_of_two_policies_in_conflict_the_one_that_forbids_is_named(
    admin: Relation, owner: Relation, reason: Reason
) -> None:
    """Whose word it is decides whom to ask: the admin's or the machine owner's."""
    box = a_machine(
        owner="cy",
        drivers=SIMULATED,
        sharing=Sharing(admin_allows=admin, owner_allows=owner),
    )
    found = told(a_snapshot(machines=(box,), waiting=(a_waiting(),)))
    assert (found.reason, found.kind) == (reason, ReasonKind.NOT_ALLOWED)


def test_the_cause_behind_a_rejection_survives_in_what_is_told() -> None:
    """The agent's own code is kept: "rejected" alone would help nobody."""
    found = told(
        a_snapshot(
            waiting=(a_waiting(rejected_by={"box": Reason.DISK_FULL}, rejections=1),)
        )
    )
    assert (found.reason, found.subject) == (Reason.AGENT_REJECTED, "disk_full")


def test_a_full_quota_says_of_what_how_much_and_whose_use_it_is() -> None:
    """Resource, numbers, and each holder with their part."""
    bio = Principal(user_id=3, name="cy", groups=("bio",))
    held = (
        an_allocation("one", devices=("GPU-gpu-box-0",), groups=("bio",)),
        an_allocation("two", devices=("GPU-gpu-box-1",), groups=("bio",)),
    )
    found = told(
        a_snapshot(
            catalog=a_catalog(quotas=(Quota(group="bio", devices=2),)),
            machines=(a_gpu_box(gpus=4, held=held, sharing=OPEN, drivers=SIMULATED),),
            waiting=(a_waiting(principal=bio, class_name="gpu"),),
        )
    )
    assert (found.reason, found.subject) == (Reason.QUOTA_IN_USE, "bio")
    assert (found.requested, found.free, found.capacity) == (1, 0, 2)
    assert found.unit == "devices"
    assert [(item.workload, item.owner, item.amount) for item in found.holders] == [
        ("one", "bob", 1),
        ("two", "bob", 1),
    ]


def test_memory_that_is_reserved_is_not_free_however_little_of_it_is_used() -> None:
    """The amounts are what is held, and by whom; what a tool calls free is no room."""
    held = an_allocation("idle", memory_bytes=30 * GIB, ends_by=NOON + 60)
    why = told(
        a_snapshot(
            catalog=a_catalog(classes=(a_class("cpu", memory_bytes=4 * GIB),)),
            machines=(a_machine("box", memory_bytes=32 * GIB, held=(held,)),),
            waiting=(a_waiting("w"),),
        )
    )
    assert why.reason is Reason.MEMORY_BUSY
    assert (why.requested, why.free, why.capacity) == (4 * GIB, 2 * GIB, 32 * GIB)
    assert [(one.owner, one.amount) for one in why.holders] == [("bob", 30 * GIB)]


def test_of_high_priority_work_the_real_blocker_is_named() -> None:
    """Nobody is pushed out: who holds the device is told, and until when."""
    held = an_allocation(devices=("GPU-gpu-box-0",), ends_by=NOON + 600)
    found = told(
        a_snapshot(
            machines=(a_gpu_box(held=(held,)),),
            waiting=(a_waiting(class_name="gpu", priority=9),),
        )
    )
    assert found.reason is Reason.GPU_BUSY
    assert [holder.workload for holder in found.holders] == ["held"]
    assert found.holders[0].ends_by.timestamp() == NOON + 600


def test_memory_that_is_reserved_is_told_with_its_reservations() -> None:
    """What ``free`` shows does not matter: reserved, capacity and holders do."""
    catalog = a_catalog(classes=(a_class(memory_bytes=30 * GIB),))
    held = an_allocation(memory_bytes=8 * GIB)
    found = told(
        a_snapshot(
            catalog=catalog,
            machines=(a_machine(held=(held,)),),
            waiting=(a_waiting(),),
        )
    )
    assert found.reason is Reason.MEMORY_BUSY
    assert (found.requested, found.free, found.capacity) == (
        30 * GIB,
        24 * GIB,
        32 * GIB,
    )
    assert [(item.workload, item.amount) for item in found.holders] == [
        ("held", 8 * GIB)
    ]


def test_a_gpu_notebook_is_told_at_once_who_holds_the_gpu_and_until_when() -> None:
    """One decision gives holder and time; no deadline has to pass first."""
    held = an_allocation(devices=("GPU-gpu-box-0",), ends_by=NOON + 3600)
    (wait,) = plan(
        a_snapshot(
            machines=(a_gpu_box(held=(held,)),),
            waiting=(a_waiting(class_name="gpu"),),
        )
    ).waits
    (holder,) = wait.explanation.holders
    assert (holder.owner, holder.amount) == ("bob", 1)
    assert holder.since.timestamp() == NOON - 3600
    assert wait.no_later_than is not None
    assert wait.no_later_than >= NOON + 3600
    assert wait.position == 0


def test_other_peoples_names_are_told_only_where_the_setting_says_so() -> None:
    """Sizes and times stay; a viewer's own work keeps its name."""
    held = (
        an_allocation("theirs", devices=("GPU-gpu-box-0",), title="Lab"),
        an_allocation("mine", owner="alice", devices=("GPU-gpu-box-1",), title="Lab"),
    )
    found = told(
        a_snapshot(
            machines=(a_gpu_box(gpus=2, held=held),),
            waiting=(a_waiting(class_name="gpu"),),
            names_visible=False,
        )
    )
    named = {item.workload: (item.owner, item.title) for item in found.holders}
    assert named == {"theirs": (None, None), "mine": ("alice", "Lab")}
    assert all(item.amount == 1 for item in found.holders)


def test_a_holder_without_an_end_gives_no_time_and_says_so() -> None:
    """Nobody knows when it ends, so nobody is promised anything behind it."""
    held = an_allocation(devices=("GPU-gpu-box-0",), ends_by=None)
    (wait,) = plan(
        a_snapshot(
            machines=(a_gpu_box(held=(held,)),),
            waiting=(a_waiting(class_name="gpu"),),
        )
    ).waits
    assert wait.no_later_than is None
    assert "no known end" in sentence(wait.explanation)


def test_nine_boxes_without_the_gpu_do_not_hide_the_one_that_is_busy() -> None:
    """The headline is the nearest miss; all the others are counted."""
    held = an_allocation(devices=("GPU-gpu-box-0",))
    (wait,) = plan(
        a_snapshot(
            machines=(
                *(a_machine(f"cpu-{number}") for number in range(9)),
                a_gpu_box(held=(held,)),
            ),
            waiting=(a_waiting(class_name="gpu"),),
        )
    ).waits
    assert wait.explanation.reason is Reason.GPU_BUSY
    assert wait.counts == {Reason.GPU_BUSY: 1, Reason.ACCELERATOR_MISMATCH: 9}


def test_a_machine_that_is_away_or_drained_keeps_the_hope() -> None:
    """Not now is not never: the work waits, and the cause names the actor."""
    away = a_gpu_box("away", online=False, offline_since=NOON - 60)
    drained = a_gpu_box("drained", draining_by="cy")
    for machine, reason in ((away, Reason.OFFLINE), (drained, Reason.DRAINING)):
        found = told(
            a_snapshot(machines=(machine,), waiting=(a_waiting(class_name="gpu"),))
        )
        assert (found.reason, found.kind) == (reason, ReasonKind.NOT_NOW)
    assert found.subject == "cy"


@pytest.mark.parametrize(
    ("closed", "text"),
    [
        (
            Reason.OUTSIDE_HOURS,
            "On box, its owner lends it at other hours (until 2026-06-01 18:00 UTC).",
        ),
        (Reason.OWNER_AT_WORK, "On box, its owner is using it (until"),
        (Reason.ON_BATTERY, "On box, it runs on its battery (until"),
        (Reason.DRAINING, "On box, it takes nothing new: it is being drained by its"),
    ],
)
def test_an_owners_terms_keep_the_hope_and_say_until_when(
    closed: Reason, text: str
) -> None:
    """A machine that its owner closed is not now, with the time at which it opens."""
    opens_at = datetime(2026, 6, 1, 18, tzinfo=UTC)
    machine = a_machine("box", closed=closed, opens_at=opens_at)
    found = told(a_snapshot(machines=(machine,), waiting=(a_waiting(),)))

    assert (found.reason, found.kind) == (closed, ReasonKind.NOT_NOW)
    assert sentence(found).startswith(text)


def test_one_broken_gpu_takes_neither_the_others_nor_the_machine_away() -> None:
    """Four devices, one of them broken: a healthy one is given out, by its UUID."""
    devices = tuple(
        a_gpu(f"GPU-{number}", healthy=number != 0, usable=number != 0)
        for number in range(4)
    )
    decided = plan(
        a_snapshot(
            machines=(a_machine(devices=devices),),
            waiting=(a_waiting(class_name="gpu"),),
        )
    )
    assert placed(decided)["asked"].resources.devices == ("GPU-1",)


def test_unknown_amounts_are_neither_room_nor_a_refusal_for_ever() -> None:
    """A machine that has not said how much memory it has fits nothing, and says so."""
    found = told(
        a_snapshot(machines=(a_machine(memory_bytes=None),), waiting=(a_waiting(),))
    )
    assert (found.reason, found.kind) == (
        Reason.CAPABILITIES_UNKNOWN,
        ReasonKind.NOT_NOW,
    )


def test_a_guest_of_a_native_machine_reads_that_it_is_not_allowed() -> None:
    """Weak isolation is for the owner; the sentence is no "busy" and no "never"."""
    found = told(a_snapshot(waiting=(a_waiting(principal=BOB),)))
    assert (found.reason, found.kind) == (
        Reason.ISOLATION_TOO_WEAK,
        ReasonKind.NOT_ALLOWED,
    )


def test_a_profile_that_nothing_serves_says_never_before_anybody_waits() -> None:
    """The offer itself shows it: an option whose machines are missing is no trap."""
    catalog = a_catalog(profiles=(a_profile(classes=("gpu",)),))
    snapshot = a_snapshot(catalog=catalog, waiting=(a_waiting(class_name="gpu"),))
    found = verdict(snapshot)
    assert not found.choosable
    assert found.explanation.kind is ReasonKind.NEVER


def placed(decided: Plan) -> dict[str, Placement]:
    """Return the placements by workload."""
    return {item.workload: item for item in decided.placements}
