"""How far an agent's word goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from fleet_builders import NOON
from fleet_controller import Fleet

from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_hub.controller.agents_word import (
    CONTROLLERS_OWN,
    LONGEST_DETAIL,
    MOST_GENERATIONS,
    own_word,
    plausible,
)
from fleet_hub.controller.errors import LinkRefusedError, StoreWriteError
from fleet_hub.controller.ports import Change


def test_an_agent_tells_of_its_own_work_alone() -> None:
    """Code and numbers stay; others, and what could harm a page, do not."""
    told = Explanation(
        reason=Reason.OUT_OF_MEMORY,
        machine="other",
        requested=5,
        unit="bytes",
        subject="mem\x00ory",
        detail="x" * 400,
        position=3,
        holders=(Holder(workload="w1", owner="alice"),),
    )
    kept = own_word(told)
    assert kept is not None
    assert (kept.reason, kept.requested, kept.unit) == (told.reason, 5, "bytes")
    assert kept.machine is None
    assert kept.holders == ()
    assert kept.position is None
    assert kept.subject == "mem ory"
    assert kept.detail is not None
    assert len(kept.detail) == LONGEST_DETAIL + 1
    assert own_word(None) is None


@pytest.mark.parametrize("reason", sorted(CONTROLLERS_OWN))
def test_an_agent_tells_nothing_of_the_line(reason: Reason) -> None:
    """A broken promise is a word of the controller alone, and so is who waits."""
    assert own_word(Explanation(reason=reason, subject="whatever")) is None


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (None, None),
        (NOON - timedelta(days=29), NOON - timedelta(days=29)),
        (NOON + timedelta(minutes=4), NOON + timedelta(minutes=4)),
        (NOON + timedelta(minutes=6), NOON),
        (NOON - timedelta(days=31), NOON),
        (datetime.max.replace(tzinfo=UTC), NOON),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), NOON),
    ],
)
def test_a_time_that_cannot_be_is_now(
    at: datetime | None, expected: datetime | None
) -> None:
    """A machine that was cut off may tell of the past, and nobody of the future."""
    assert plausible(at, NOON) == expected


def test_a_restored_store_is_lifted_and_no_lie_goes_far() -> None:
    """Once a minute for each machine, and by as much as a backup can be old."""
    fleet = Fleet()
    agent = fleet.machine()

    def links(generations: int) -> bool:
        agent.disconnect()
        last = fleet.core.model.generation + generations - 1
        agent.highest_epoch = (last << 32) + 1_000_000
        try:
            agent.connect()
        except LinkRefusedError:
            agent.disconnect()
            return False
        return True

    begun = fleet.core.model.generation
    assert links(MOST_GENERATIONS)
    assert fleet.core.model.generation == begun + MOST_GENERATIONS
    assert links(0), "nothing has to be lifted for this one"
    assert not links(1), "again, within a minute"
    fleet.clock.advance(60)
    assert links(1)
    fleet.clock.advance(60)
    assert not links(MOST_GENERATIONS + 1)


def test_a_lift_that_was_not_written_may_be_tried_again() -> None:
    """A full disk must not keep a machine away."""
    fleet = Fleet()
    agent = fleet.machine()
    agent.disconnect()
    agent.highest_epoch = (fleet.core.model.generation + 1) << 32
    commit = fleet.store.commit

    def full(change: Change) -> None:
        raise StoreWriteError("the disk is full")

    fleet.store.commit = full  # type: ignore[method-assign]
    with pytest.raises(StoreWriteError):
        agent.connect()
    agent.disconnect()
    fleet.store.commit = commit  # type: ignore[method-assign]
    agent.connect()
    assert agent.session is not None


def test_an_agent_that_saw_our_own_orders_may_come_as_often_as_it_likes() -> None:
    """Nothing has to be lifted above what this very process has given."""
    fleet = Fleet()
    agent = fleet.machine()
    fleet.ask()
    assert agent.highest_epoch > 0
    generation = fleet.core.model.generation
    for _ in range(3):
        agent.disconnect()
        agent.connect()
    assert fleet.core.model.generation == generation
