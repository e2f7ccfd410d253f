"""A quota in the way: of what, how much, and whose use; or that it can never fit."""

from __future__ import annotations

import pytest
from fleet_builders import a_principal
from fleet_controller import Fleet, an_ask
from fleet_pictures import GIB, some_gpus
from scenario_fleets import a_box, a_fleet, another, the_catalog
from scheduling_builders import a_class, a_gpu_class
from told_everywhere import answer_to, in_a_terminal, timeline_to, told, what_if

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Quota, Relation, ResourceClass
from fleet_contracts.reasons import Reason, ReasonKind
from fleet_contracts.sentences import sentence
from fleet_contracts.workloads import DriverName
from fleet_hub.controller import asking, governing
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.settings import Settings


ROOT = Actor(name="root", role=ActorRole.ADMIN)


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
    fleet = a_fleet(asked, {"box": {}})
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


def under(quota: Quota, *more: Quota, settings: Settings | None = None) -> Fleet:
    """Return alice's box under quotas, lent to everybody."""
    catalog = the_catalog(
        a_class("cpu", limit_seconds=3600),
        a_class("large", cpu_milli=3000, memory_bytes=12 * GIB),
        a_gpu_class("gpu", limit_seconds=3600),
        quotas=(quota, *more),
    )
    fleet = a_box(catalog, settings=settings, driver=DriverName.SIMULATION)
    for lend in (governing.set_audience, governing.set_lending):
        lend(fleet.core, ROOT, "box", Relation.GUEST)
    return fleet


@pytest.mark.parametrize(
    ("amounts", "class_name", "before", "numbers"),
    [
        ({"devices": 1}, "gpu", 1, "1 device asked for, 0 of 1 free"),
        ({"workloads": 2}, "cpu", 2, "1 workload asked for, 0 of 2 free"),
        ({"cpu_milli": 5000}, "large", 1, "3 cores asked for, 2 of 5 free"),
        (
            {"memory_bytes": 20 * GIB},
            "large",
            1,
            "12 GiB asked for, 8 GiB of 20 GiB free",
        ),
    ],
)
@pytest.mark.parametrize("of_group", [False, True], ids=["user", "group"])
def test_a_quota_in_use_says_which_resource_how_much_and_whose_use_it_is(
    amounts: dict[str, int],
    class_name: str,
    before: int,
    numbers: str,
    of_group: bool,
) -> None:
    """For a user and for a group, of each thing that may be limited."""
    quota = Quota(**({"group": "bio"} if of_group else {"user": "bob"}), **amounts)
    fleet = under(quota)
    bob = a_principal("bob", 2, groups=("bio",))
    cy = a_principal("cy", 3, groups=("bio",))
    holder, asker = (cy, bob) if of_group else (bob, bob)
    held = [
        another(fleet, number, class_name, principal=holder)
        for number in range(1, before + 1)
    ]
    assert all(record.state is State.PLACED for record in held)
    record = another(fleet, 9, class_name, principal=asker)
    why = told(fleet, record)
    assert why.reason is (Reason.QUOTA_IN_USE if of_group else Reason.USER_LIMIT)
    assert (why.subject, why.kind) == (
        "bio" if of_group else "bob",
        ReasonKind.BUSY,
    )
    assert numbers in sentence(why)
    assert [one.workload for one in why.holders] == [one.id for one in held]
    assert {one.owner for one in why.holders} == {holder.name}
    assert sum(one.amount or 0 for one in why.holders) == (
        (why.capacity or 0) - (why.free or 0)
    )
    whose = "The quota of group bio" if of_group else "Your own quota"
    assert f"{whose} is in use: {numbers}; held by" in in_a_terminal(
        answer_to(fleet, record)
    )


def test_what_a_promise_uses_up_of_a_quota_is_told_with_whose_promise_it_is() -> None:
    """Nothing is held yet, and the quota is used up all the same: that is said."""
    fleet = under(Quota(user="bob", devices=1))
    bob = a_principal("bob", 2)
    for server in (1, 2):
        another(fleet, server, "gpu", principal=a_principal("cy", 3))
    first = another(fleet, 3, "gpu", principal=bob)
    second = another(fleet, 4, "gpu", principal=bob)
    assert told(fleet, first).reason is Reason.GPU_BUSY
    assert timeline_to(fleet, first).limits.starts_by is not None
    why = told(fleet, second)
    [ahead] = why.holders
    assert (ahead.workload, ahead.promised, ahead.amount) == (first.id, True, 1)
    assert sentence(why) == (
        "Your own quota is in use: 1 device asked for, 0 of 1 free; promised to you."
    )


def test_names_of_a_group_s_other_members_are_told_only_where_names_are() -> None:
    """How much each of them has stays, and so does the reader's own name."""
    fleet = under(
        Quota(group="bio", workloads=2), settings=Settings(names_visible=False)
    )
    bob, cy = (
        a_principal(name, number, groups=("bio",))
        for name, number in (("bob", 2), ("cy", 3))
    )
    another(fleet, 1, principal=cy)
    another(fleet, 2, principal=bob)
    why = told(fleet, another(fleet, 3, principal=bob))
    assert [(one.owner, one.own, one.amount) for one in why.holders] == [
        (None, False, 1),
        ("bob", True, 1),
    ]
    assert "held by somebody else until" in sentence(why)


def test_of_a_user_s_and_a_group_s_quota_the_one_that_is_full_is_told() -> None:
    """The other has room, and its numbers would mislead."""
    fleet = under(Quota(user="*", workloads=9), Quota(group="bio", workloads=1))
    bob = a_principal("bob", 2, groups=("bio",))
    another(fleet, 1, principal=bob)
    why = told(fleet, another(fleet, 2, principal=bob))
    assert (why.reason, why.subject, why.capacity) == (Reason.QUOTA_IN_USE, "bio", 1)


def test_a_quota_keeps_nobody_else_from_what_is_free() -> None:
    """Whoever is over their quota waits for themselves alone."""
    fleet = under(Quota(user="bob", devices=1))
    for server in (1, 2):
        another(fleet, server, "gpu", principal=a_principal("bob", 2))
    assert another(fleet, 3, "gpu").state is State.PLACED
