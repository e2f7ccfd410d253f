"""A quota in the way: of what, how much, and whose use; or that it can never fit."""

from __future__ import annotations

import pytest
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_pictures import GIB, some_gpus
from scenario_fleets import a_fleet
from scheduling_builders import (
    a_class,
    a_gpu_class,
    a_runtime,
)
from told_everywhere import told, what_if

from fleet_contracts.allocations import State
from fleet_contracts.catalog import (
    Quota,
    ResourceClass,
)
from fleet_contracts.reasons import Reason, ReasonKind
from fleet_contracts.sentences import sentence
from fleet_hub.controller import asking
from fleet_hub.controller.errors import RequestRefusedError


@pytest.mark.parametrize(
    ("quota", "asked", "subject", "numbers"),
    [
        (
            Quota(user="*", cpu_milli=5000),
            a_class(cpu_milli=6000),
            "alice",
            "6 cores asked for, 5 cores allowed",
        ),
        (
            Quota(group="bio", devices=1),
            a_gpu_class(devices=2),
            "bio",
            "2 devices asked for, 1 device allowed",
        ),
        (
            Quota(user="alice", workloads=0),
            a_class(),
            "alice",
            "1 workload asked for, 0 workloads allowed",
        ),
        (
            Quota(group="*", memory_bytes=GIB),
            a_class(memory_bytes=2 * GIB),
            "bio",
            "2 GiB asked for, 1 GiB allowed",
        ),
    ],
)
def test_more_than_a_quota_allows_at_all_can_never_fit_and_is_no_wait(
    quota: Quota, asked: ResourceClass, subject: str, numbers: str
) -> None:
    """Refused as it is asked for, with whose quota it is and both numbers.

    A machine with room for it changes nothing.
    """
    fleet = a_fleet(
        asked, {"big": {"cores": 64, "gpus": some_gpus("big", 4)}}, quotas=(quota,)
    )
    alice = a_principal(groups=("bio",))
    with pytest.raises(RequestRefusedError) as refused:
        asking.ask(fleet.core, an_ask(principal=alice, profile="lab", class_name=None))
    why = refused.value.explanation
    assert (why.reason, why.kind) == (Reason.EXCEEDS_QUOTA_EVER, ReasonKind.NEVER)
    assert sentence(why) == (
        f"This alone is more than the quota of {subject}: {numbers}."
    )
    asked_only = what_if(fleet, "alice", "lab", None, "bio")
    assert not asked_only.may_be_asked
    assert asked_only.why is not None
    assert asked_only.why.explanation == why


def test_a_quota_that_shrinks_below_what_waits_ends_the_wait_with_both_numbers() -> (
    None
):
    """What was possible when it was asked for is refused once it is not."""
    asked = a_class(cpu_milli=6000)
    fleet = a_fleet(asked, {"box": {}}, runtimes=(a_runtime(),))
    fleet.ask(profile="lab", class_name=None)
    waiting = fleet.ask(2, profile="lab", class_name=None)
    assert waiting.state is State.QUEUED
    smaller = fleet.catalogs.catalog.model_copy(
        update={"quotas": (Quota(user="alice", cpu_milli=5000),)}
    )
    fleet.catalogs.catalog = smaller
    fleet.core.want_cycle()
    fleet.cycle()
    why = told(fleet, waiting)
    assert fleet.get(waiting).state is State.REFUSED
    assert (why.reason, why.requested, why.capacity) == (
        Reason.EXCEEDS_QUOTA_EVER,
        6000,
        5000,
    )
