"""A reason that was known once: told again and again, and never taken back to none."""

from __future__ import annotations

from fleet_controller import FakeAgent, Fleet, allocation_of, an_ask

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AgentEvent, Heartbeat
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller import asking, stopping
from fleet_hub.controller.records import Workload
from fleet_hub.controller.retelling import wait_of
from fleet_hub.controller.ticking import tick
from fleet_hub.service.gauges import Gauges


def counted(fleet: Fleet) -> dict[str, float]:
    """Return how many wait for which reason, as the metrics tell it."""
    return {
        sample.labels["reason"]: sample.value
        for metric in Gauges(fleet.core).collect()
        if metric.name.endswith("waiting_reasons")
        for sample in metric.samples
    }


def reasons(fleet: Fleet, record: Workload) -> set[Reason | None]:
    """Return what every reader of *record* is told just now."""
    found = fleet.get(record)
    wait = wait_of(fleet.core, found)
    [metric] = counted(fleet)
    told = [found.explanation, wait and wait.explanation]
    return {item and item.reason for item in told} | {Reason(metric)}


def a_waiter(fleet: Fleet) -> Workload:
    """Return who waits for the machine that somebody holds whole."""
    holder = fleet.ask(1, class_name="whole")
    fleet.agents["box"].serve(allocation_of(holder))
    return fleet.ask(2, class_name="whole")


def an_agent(fleet: Fleet) -> FakeAgent:
    """Return the agent of the one machine."""
    return fleet.agents.get("box") or fleet.machine()


def test_who_has_just_asked_is_not_evaluated_yet_until_the_first_cycle() -> None:
    """The first cycle says why; whoever asks before it is answered there and then."""
    fleet = Fleet()
    record = asking.ask(fleet.core, an_ask())
    assert counted(fleet) == {Reason.NOT_EVALUATED_YET: 1}
    wait = wait_of(fleet.core, record)
    assert wait is not None
    assert wait.explanation.reason is Reason.NO_MACHINES
    fleet.cycle()
    assert fleet.get(record).state is State.QUEUED
    assert reasons(fleet, record) == {Reason.NO_MACHINES}


def test_a_restart_of_the_controller_takes_no_reason_away() -> None:
    """Before the next process has decided anything, the last word stands."""
    fleet = Fleet()
    fleet.machine()
    record = a_waiter(fleet)
    assert reasons(fleet, record) == {Reason.CPU_BUSY}
    fleet = fleet.restarted()
    assert counted(fleet) == {Reason.CPU_BUSY: 1}
    assert fleet.get(record).explanation is not None
    wait = wait_of(fleet.core, fleet.get(record))
    assert wait is not None
    assert wait.explanation.reason is not Reason.NOT_EVALUATED_YET


def test_a_reason_once_known_changes_and_never_reverts_to_none() -> None:
    """The machine goes, returns, rejects and is lost: each time there is a reason."""
    fleet = Fleet()
    agent = fleet.machine()
    record = a_waiter(fleet)
    seen = [reasons(fleet, record)]

    def look() -> None:
        """See what is told at once, and after the next cycle."""
        seen.append(reasons(fleet, record))
        tick(fleet.core)
        fleet.cycle()
        seen.append(reasons(fleet, record))

    agent.disconnect()
    look()
    fleet.clock.advance(3600)
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
    told = set().union(*seen)
    assert None not in told
    assert Reason.NOT_EVALUATED_YET not in told
    assert told >= {Reason.CPU_BUSY, Reason.OFFLINE, Reason.AGENT_REJECTED}
