"""A reason is there from the first moment on, and follows what is in the way."""

from __future__ import annotations

from typing import Any

import pytest
from fake_agent import FakeAgent
from fleet_controller import Fleet, allocation_of, an_ask
from fleet_pictures import GIB
from scenario_fleets import a_box, another, the_catalog
from scheduling_builders import a_class, a_gpu_class
from told_everywhere import timeline_to, told, waiting_by_reason

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Quota
from fleet_contracts.protocol import AgentEvent, Heartbeat
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller import asking, governing, stopping
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.records import Workload
from fleet_hub.controller.retelling import wait_of
from fleet_hub.controller.ticking import tick


ROOT = Actor(name="root", role=ActorRole.ADMIN)
HOUR = 3600.0


def with_quota(**amounts: Any) -> Fleet:
    """Return the same fleet under a quota."""
    fleet = a_box()
    fleet.catalogs.catalog = fleet.catalogs.catalog.model_copy(
        update={"quotas": (Quota(**amounts),)}
    )
    return fleet


def free(fleet: Fleet, record: Workload) -> FakeAgent:
    """Let the machine confirm the end of *record*, which holds something."""
    agent = fleet.agents["box"]
    agent.report(allocation_of(fleet.get(record)), AgentEvent.ENDED)
    return agent


def drained(fleet: Fleet) -> Reason:
    """Let an admin drain the machine."""
    governing.drain(fleet.core, ROOT, "box")
    return Reason.DRAINING


def away(fleet: Fleet) -> Reason:
    """Let the machine lose its link."""
    fleet.agents["box"].disconnect()
    return Reason.OFFLINE


def test_a_reason_is_there_from_the_first_moment_on() -> None:
    """Until the first cycle it is "not looked at yet", and whoever asks is told more."""
    fleet = Fleet()
    record = asking.ask(fleet.core, an_ask())
    assert waiting_by_reason(fleet) == {"not_evaluated_yet": 1}
    wait = wait_of(fleet.core, record)
    assert wait is not None
    assert wait.explanation.reason is Reason.NO_MACHINES
    fleet.cycle()
    assert fleet.get(record).state is State.QUEUED
    assert told(fleet, record).reason is Reason.NO_MACHINES


def test_a_restart_of_the_controller_takes_no_reason_away() -> None:
    """Before the next process has decided anything, the last word stands."""
    fleet = a_box()
    another(fleet, 1, "most")
    record = another(fleet, 2, "most")
    assert told(fleet, record).reason is Reason.MEMORY_BUSY
    fleet = fleet.restarted()
    assert waiting_by_reason(fleet) == {"memory_busy": 1}
    assert fleet.get(record).explanation is not None
    wait = wait_of(fleet.core, fleet.get(record))
    assert wait is not None
    assert wait.explanation.reason is not Reason.NOT_EVALUATED_YET


def test_a_reason_once_known_changes_and_never_reverts_to_none() -> None:
    """The machine goes, returns, rejects and is lost: each time there is a reason."""
    fleet = a_box()
    agent = fleet.agents["box"]
    agent.serve(allocation_of(another(fleet, 1, "most")))
    record = another(fleet, 2, "most")
    seen = [told(fleet, record).reason]

    def look() -> None:
        """See what is told at once, and after the next cycle."""
        wait = wait_of(fleet.core, fleet.get(record))
        assert wait is not None
        seen.append(wait.explanation.reason)
        tick(fleet.core)
        fleet.cycle()
        seen.append(told(fleet, record).reason)

    agent.disconnect()
    look()
    fleet.clock.advance(HOUR)
    look()
    agent.connect()
    agent.say(Heartbeat(sent_at=fleet.clock.now()))
    look()
    fleet.core.engine.forget()
    look()
    [holder] = [one for one in fleet.core.model.workloads.values() if one.holds]
    agent.report(allocation_of(holder), AgentEvent.ENDED)
    fleet.cycle()
    placed = fleet.get(record)
    assert placed.state is State.PLACED
    agent.report(
        allocation_of(placed),
        AgentEvent.REJECTED,
        explanation=Explanation(reason=Reason.SELECTION_MISMATCH),
    )
    look()
    stopping.declare_lost(fleet.core, "box")
    look()
    assert Reason.NOT_EVALUATED_YET not in seen
    assert {*seen} >= {Reason.MEMORY_BUSY, Reason.OFFLINE, Reason.AGENT_REJECTED}


@pytest.mark.parametrize("blocker", [drained, away])
def test_a_quota_that_frees_leaves_no_stale_word_where_something_else_is_in_the_way(
    blocker: Any,
) -> None:
    """Within the cycle of the change, in every place where somebody may look."""
    fleet = with_quota(user="alice", workloads=1)
    holder = another(fleet, 1)
    record = another(fleet, 2)
    assert told(fleet, record).reason is Reason.USER_LIMIT
    agent = free(fleet, holder)
    expected = blocker(fleet)
    assert agent is fleet.agents["box"]
    fleet.cycle()
    assert told(fleet, record).reason is expected
    assert waiting_by_reason(fleet) == {expected.value: 1}
    told_rows = [event.explanation for event in timeline_to(fleet, record).events]
    last = [one for one in told_rows if one is not None][-1]
    assert last.reason is expected


def test_a_blocker_that_goes_leaves_the_quota_that_is_left_as_the_word() -> None:
    """The other way round: the machine is back, and the quota is still full."""
    fleet = with_quota(user="alice", workloads=1)
    another(fleet, 1)
    governing.drain(fleet.core, ROOT, "box")
    record = another(fleet, 2)
    assert told(fleet, record).reason is Reason.USER_LIMIT
    governing.resume(fleet.core, ROOT, "box")
    fleet.cycle()
    assert told(fleet, record).reason is Reason.USER_LIMIT


def test_a_change_of_the_catalog_leaves_no_stale_quota() -> None:
    """The quota is taken out of the file: the memory that is short is told at once."""
    fleet = with_quota(user="alice", memory_bytes=40 * GIB)
    another(fleet, 1, "most")
    record = another(fleet, 2, "most")
    assert told(fleet, record).reason is Reason.USER_LIMIT
    fleet.catalogs.catalog = fleet.catalogs.catalog.model_copy(update={"quotas": ()})
    fleet.core.want_cycle()
    fleet.cycle()
    assert told(fleet, record).reason is Reason.MEMORY_BUSY


def test_what_moves_between_two_amounts_is_told_anew_with_the_one_that_is_short() -> (
    None
):
    """Memory frees while the GPUs are taken: the reason follows within the cycle."""
    fleet = a_box(
        the_catalog(
            a_gpu_class("both", devices=2),
            a_class("most", memory_bytes=31 * GIB + (GIB >> 1)),
            a_gpu_class("gpu", memory_bytes=GIB >> 2),
        )
    )
    most = another(fleet, 1, "most")
    one = another(fleet, 2, "gpu")
    record = another(fleet, 3, "both")
    assert (most.state, one.state) == (State.PLACED, State.PLACED)
    assert told(fleet, record).reason is Reason.GPU_BUSY
    free(fleet, one)
    fleet.cycle()
    assert told(fleet, record).reason is Reason.MEMORY_BUSY
