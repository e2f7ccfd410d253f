"""What a quota, a priority or work without a limit means for the places of others."""

from __future__ import annotations

from dataclasses import replace

from scheduling_builders import (
    ALICE,
    BOB,
    GIB,
    HOURLY_GPUS,
    NOON,
    a_busy_box,
    a_gpu_box,
    a_gpu_hold,
    a_gpu_request,
    a_planner,
    an_allocation,
    told,
)

from fleet_contracts.catalog import Quota
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.choice import SLACK_SECONDS


HOUR = 3600.0


def test_who_waits_for_a_quota_is_not_counted_before_anybody() -> None:
    """Bob's own work keeps him, urgent or not: alice is the first to get the GPU."""
    planner = a_planner(
        a_busy_box(),
        catalog=HOURLY_GPUS.model_copy(
            update={"quotas": (Quota(user="bob", devices=1),)}
        ),
        waiting=(
            a_gpu_request("bobs", principal=BOB, profile="urgent"),
            a_gpu_request("alices"),
        ),
    )
    planner.decide(NOON)
    assert list(planner.line) == ["bobs", "alices"]
    found = told(planner)
    assert found["bobs"].explanation.reason is Reason.USER_LIMIT
    assert found["bobs"].no_later_than is None
    assert found["alices"].position == 0


def test_what_is_promised_to_a_user_counts_against_their_quota() -> None:
    """Otherwise the second would take from the first what was promised to it."""
    quota = Quota(user="alice", devices=1)
    planner = a_planner(
        a_busy_box(),
        catalog=HOURLY_GPUS.model_copy(update={"quotas": (quota,)}),
        waiting=(a_gpu_request("first"), a_gpu_request("second")),
    )
    planner.decide(NOON)
    found = told(planner)
    assert found["first"].no_later_than == NOON + HOUR + SLACK_SECONDS
    assert found["second"].explanation.reason is Reason.USER_LIMIT
    assert found["second"].no_later_than is None


def test_an_urgent_request_is_not_kept_back_by_a_lower_promise_of_its_own_user() -> (
    None
):
    """The quota goes to what matters more, and the other one is told."""
    quota = Quota(user="alice", devices=1)
    planner = a_planner(
        a_busy_box(),
        catalog=HOURLY_GPUS.model_copy(update={"quotas": (quota,)}),
        waiting=(a_gpu_request("lower"),),
    )
    planner.decide(NOON)
    told(planner)
    planner.ask(a_gpu_request("urgent", profile="urgent"))
    planner.decide(NOON)
    found = told(planner)
    assert found["urgent"].no_later_than == NOON + HOUR + SLACK_SECONDS
    assert found["lower"].no_later_than is None
    assert found["lower"].broken is not None
    assert found["lower"].explanation.reason is Reason.USER_LIMIT


def test_a_promise_on_another_machine_uses_up_the_quota_of_a_lower_one_as_well() -> (
    None
):
    """Nothing about the lower one's own machine changed, and it is told all the same."""
    quota = Quota(user="alice", devices=1)
    planner = a_planner(
        a_busy_box("a"),
        catalog=HOURLY_GPUS.model_copy(update={"quotas": (quota,)}),
        waiting=(a_gpu_request("lower"),),
    )
    planner.decide(NOON)
    assert told(planner)["lower"].no_later_than == NOON + HOUR + SLACK_SECONDS
    planner.put_machine(a_busy_box("b", NOON + HOUR / 2))
    planner.ask(a_gpu_request("urgent", profile="urgent"))
    planner.decide(NOON + 1)
    found = told(planner)
    assert found["urgent"].no_later_than == NOON + HOUR / 2 + SLACK_SECONDS
    assert (found["lower"].no_later_than, found["lower"].broken.subject) == (
        None,
        "quota",
    )
    assert found["lower"].explanation.reason is Reason.USER_LIMIT


def test_a_promise_that_a_quota_takes_back_leaves_its_group_s_share_to_the_next() -> (
    None
):
    """Whoever waited for the group's quota is looked at, though no machine changed."""
    alice, bob = (
        Principal(user_id=number, name=name, groups=("bio",))
        for number, name in ((1, "alice"), (2, "bob"))
    )
    quotas = (Quota(user="alice", devices=1), Quota(group="bio", devices=1))
    free = a_gpu_box("spare", owner="alice", draining_by="alice")
    planner = a_planner(
        a_busy_box(),
        free,
        catalog=HOURLY_GPUS.model_copy(update={"quotas": quotas}),
        waiting=(
            a_gpu_request("first", principal=alice),
            a_gpu_request("second", principal=bob, asked_at=NOON - 1),
        ),
    )
    planner.decide(NOON)
    found = told(planner)
    assert found["first"].no_later_than == NOON + HOUR + SLACK_SECONDS
    assert found["second"].explanation.reason is Reason.QUOTA_IN_USE
    theirs = replace(a_gpu_hold("spare", None), owner="alice", user_id=1)
    planner.put_machine(replace(free, held=(theirs,)))
    planner.decide(NOON + 1)
    found = told(planner)
    assert found["first"].no_later_than is None
    assert found["second"].no_later_than == NOON + HOUR + SLACK_SECONDS
    assert planner.look_again(10) == 0


def test_a_quota_that_is_used_up_meanwhile_takes_a_promise_back_and_says_so() -> None:
    """Work of theirs that turned up elsewhere leaves nothing to promise."""
    quota = Quota(user="alice", devices=1)
    free = a_gpu_box("spare", owner="alice", draining_by="alice")
    planner = a_planner(
        a_busy_box(),
        free,
        catalog=HOURLY_GPUS.model_copy(update={"quotas": (quota,)}),
        waiting=(a_gpu_request("next"),),
    )
    planner.decide(NOON)
    assert told(planner)["next"].no_later_than is not None
    theirs = replace(a_gpu_hold("spare", None), owner="alice", user_id=1)
    planner.put_machine(replace(free, held=(theirs,)))
    planner.decide(NOON + 1)
    found = told(planner)["next"]
    assert (found.no_later_than, found.broken.subject) == (None, "quota")
    assert found.explanation.reason is Reason.USER_LIMIT


def test_a_second_urgent_request_comes_after_the_first_and_before_the_rest() -> None:
    """Priority takes the place of those below, and of nobody beside it."""
    planner = a_planner(a_busy_box(), waiting=(a_gpu_request("lower"),))
    planner.decide(NOON)
    told(planner)
    for name, user in (("urgent-1", ALICE), ("urgent-2", BOB)):
        planner.ask(a_gpu_request(name, profile="urgent", principal=user))
        planner.decide(NOON)
    found = told(planner)
    times = {name: item.no_later_than for name, item in found.items()}
    assert sorted(times, key=times.__getitem__) == ["urgent-1", "urgent-2", "lower"]
    assert found["urgent-1"].broken is None
    assert found["lower"].broken.subject == "priority"


def test_behind_work_without_a_limit_nobody_is_promised_a_time() -> None:
    """It is promised the end of the holder, and nobody knows its own end."""
    box = a_busy_box()
    planner = a_planner(
        box,
        waiting=(
            a_gpu_request("endless", class_name="endless", asked_at=NOON - 20),
            a_gpu_request("after", principal=BOB, asked_at=NOON - 10),
        ),
    )
    for now in (NOON, NOON + 60):
        planner.decide(now)
        found = told(planner)
        assert found["endless"].no_later_than == NOON + HOUR + SLACK_SECONDS
        assert found["after"].no_later_than is None
        assert found["after"].broken is None
        # The same news again moves nothing.
        planner.put_machine(box)


def test_the_headline_is_the_nearest_miss_and_not_always_where_it_is_promised() -> None:
    """A free GPU that lacks only memory comes nearer than one that is held."""
    memory = an_allocation("memory", memory_bytes=32 * GIB, ends_by=None)
    near = replace(a_busy_box("b"), held=(memory,))
    planner = a_planner(a_busy_box("a"), near, waiting=(a_gpu_request("next"),))
    planner.decide(NOON)
    found = told(planner)["next"]
    assert found.reservation.machine == "a"
    assert found.explanation.machine == "b"
    assert found.explanation.reason is Reason.MEMORY_BUSY


def test_on_one_machine_a_hundred_are_promised_a_time_and_the_rest_a_place() -> None:
    """Whoever comes after them is told how many are ahead, and a time when it is near."""
    names = [f"w{number:03}" for number in range(103)]
    waiting = tuple(
        a_gpu_request(name, asked_at=NOON - 200 + number)
        for number, name in enumerate(names)
    )
    planner = a_planner(a_busy_box(), waiting=waiting)
    planner.decide(NOON)
    found = told(planner)
    timed = [name for name in names if found[name].no_later_than is not None]
    assert timed == names[:100]
    assert found["w102"].position == 102
    planner.leave("w000")
    planner.decide(NOON + 1)
    assert told(planner)["w100"].no_later_than is not None
