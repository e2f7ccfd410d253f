"""Why it waits: codes with numbers and holders, for each kind of "no" as users met it.

The kinds come from reports about other schedulers, which gave one text for all.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from scheduling_builders import (
    BOB,
    NOON,
    OPEN,
    a_catalog,
    a_gpu,
    a_gpu_box,
    a_machine,
    a_profile,
    a_snapshot,
    a_waiting,
    an_allocation,
)

from fleet_contracts.catalog import Quota
from fleet_contracts.reasons import Explanation, Reason, ReasonKind
from fleet_contracts.sentences import sentence
from fleet_contracts.workloads import DriverName, Principal
from fleet_hub.scheduling.decisions import Placement, Plan, Verdict
from fleet_hub.scheduling.explain import explain
from fleet_hub.scheduling.plan import plan
from fleet_hub.scheduling.snapshot import Snapshot


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
