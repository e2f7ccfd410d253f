"""Whatever dies, jumps or is cut off: one holder, one recorded outcome, nothing lost."""

from __future__ import annotations

import pytest
from controller_catalogs import a_catalog
from fake_agent import FakeAgent
from fleet_controller import Fleet
from scheduling_builders import (
    a_catalog as a_device_catalog,
    a_gpu,
    a_metal_gpu,
    some_facts,
)
from typing_extensions import override

from fleet_contracts.allocations import HOLDING, State
from fleet_contracts.catalog import Deadlines
from fleet_contracts.placement_facts import PlacementFacts
from fleet_contracts.protocol import AgentEvent, Heartbeat
from fleet_contracts.reasons import Reason
from fleet_contracts.timeline import TimelineKind
from fleet_contracts.workloads import DriverName
from fleet_hub.adapters.memory_store import MemoryStore
from fleet_hub.controller.ports import Change
from fleet_hub.controller.records import Workload
from fleet_hub.controller.ticking import tick


class Killed(BaseException):
    """The process is gone, in the middle of what it did."""


class DiesAtCommit(MemoryStore):
    """A store whose process is killed at one of its commits: just before, or after."""

    def __init__(self, number: int, *, after: bool) -> None:
        """Die at commit *number*."""
        super().__init__()
        self._left = number
        self._after = after

    @override
    def commit(self, change: Change) -> None:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise Killed
        super().commit(change)
        if self._left == 0:
            raise Killed


def live_through(fleet: Fleet) -> None:
    """Let three servers share one machine of two places, from asking to ending."""
    agent = fleet.machine(cores=2)
    for server in (1, 2, 3):
        fleet.ask(server)
    while allocations := running(agent):
        for allocation in allocations:
            agent.serve(allocation)
        for allocation in allocations:
            agent.report(allocation, AgentEvent.ENDED)
            fleet.cycle()


def running(agent: FakeAgent) -> list[str]:
    """Return the allocations that really run."""
    return [name for name in agent.launched if name not in agent.ended]


def commits_of_a_life() -> int:
    """Return how many commits that takes."""
    store = DiesAtCommit(10_000, after=True)
    live_through(Fleet(store))
    return 10_000 - store._left


COMMITS = commits_of_a_life()


def check(fleet: Fleet) -> None:
    """Nothing is held twice, by nobody, or beyond what the machine has."""
    model = fleet.core.model
    held = {
        record.assignment.allocation
        for record in model.workloads.values()
        if record.assignment is not None
    }
    assert held == {name for name, item in model.issued.items() if item.open}
    for record in model.workloads.values():
        assert (record.state in HOLDING) == (record.assignment is not None)
        events = fleet.store.events(record.id)
        assert events[-1].seq == record.last_seq
        if record.holds:
            # What is held and the entry that says so are one commit.
            kinds = [one.kind for one in events if one.generation == record.generation]
            assert TimelineKind.PLACED in kinds
    for agent in fleet.agents.values():
        used = [agent.launched[name].spec.resources for name in running(agent)]
        assert sum(item.cpu_milli for item in used) <= 2000
        assert set(running(agent)) <= model.issued.keys()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("jump", [0, 3600, -3600], ids=["", "later", "earlier"])
@pytest.mark.parametrize("number", range(1, COMMITS + 1))
def test_a_kill_at_any_commit_loses_and_doubles_nothing(
    number: int, jump: int, *, after: bool
) -> None:
    """The next process brings everybody to their end, an hour off by its clock or not."""
    fleet = Fleet(DiesAtCommit(number, after=after))
    with pytest.raises(Killed):
        live_through(fleet)
    fleet.clock.advance(jump)
    fleet = fleet.restarted()
    agent = fleet.agents.get("box") or fleet.machine(cores=2)
    agent.disconnect()
    agent.connect(cores=2)
    agent.say(Heartbeat(sent_at=fleet.clock.now()))
    for record in list(fleet.core.model.workloads.values()):
        fleet.core.attended[record.id] = 1
    check(fleet)
    for server in (1, 2, 3):
        fleet.ask(server, attempt="again")
        check(fleet)
    for _ in range(3):
        for allocation in running(agent):
            if allocation not in agent.ledger:
                agent.serve(allocation)
        check(fleet)
        for allocation in running(agent):
            agent.report(allocation, AgentEvent.ENDED)
        fleet.cycle()
        check(fleet)
    assert not any(record.holds for record in fleet.core.model.workloads.values())
    assert {record.state for record in fleet.core.model.workloads.values()} == {
        State.STOPPED
    }


def with_facts(fleet: Fleet, machine: str, facts: PlacementFacts) -> None:
    """Let *machine* have told these facts."""
    fleet.core.model.presence[machine].facts = facts
    fleet.core.model.stirred.add(machine)
    fleet.core.want_cycle()
    fleet.cycle()


A_MAC = some_facts(os="darwin", architecture="arm64", devices=(a_metal_gpu(),))
A_GPU_BOX = some_facts(devices=(a_gpu(),))


def a_device_fleet(facts: PlacementFacts) -> tuple[Fleet, FakeAgent]:
    """Return alice's fleet of one machine with these facts."""
    fleet = Fleet(catalog=a_device_catalog())
    agent = fleet.machine()
    with_facts(fleet, "box", facts)
    return fleet, agent


def ask(fleet: Fleet, server: int, class_name: str) -> Workload:
    """Ask for a server of the profile that offers every device."""
    return fleet.ask(server, profile="lab", class_name=class_name)


def test_a_mac_cut_off_for_ten_minutes_keeps_its_one_holder() -> None:
    """Nobody else gets its GPU meanwhile, and its return is one entry, not two lives."""
    fleet, agent = a_device_fleet(A_MAC)
    holder = ask(fleet, 1, "metal")
    agent.serve(holder.assignment.allocation)
    waiter = ask(fleet, 2, "cpu")
    agent.disconnect()
    for _ in range(20):
        fleet.clock.advance(30)
        tick(fleet.core)
        fleet.cycle()
        assert fleet.get(holder).state in {State.READY, State.UNKNOWN}
        assert fleet.get(waiter).assignment is None
    agent.connect()
    agent.say(Heartbeat(sent_at=fleet.clock.now()))
    with_facts(fleet, "box", A_MAC)
    assert fleet.get(holder).state is State.READY
    assert fleet.get(waiter).assignment is None
    assert len(agent.launched) == 1
    kinds = [event.kind for event in fleet.store.events(holder.id)]
    assert kinds.count(TimelineKind.SILENT) == 1
    assert kinds.count(TimelineKind.RETURNED) == 1
    assert kinds.count(TimelineKind.READY) == 1


def test_an_agent_that_starts_again_gives_no_gpu_before_its_probes_have_run() -> None:
    """Who holds the GPU keeps it unseen; who waits starts with a device, or waits."""
    fleet, agent = a_device_fleet(A_GPU_BOX)
    holder = ask(fleet, 1, "gpu")
    agent.serve(holder.assignment.allocation)
    agent.disconnect()
    agent.connect()
    with_facts(fleet, "box", some_facts(settled=False))
    waiter = ask(fleet, 2, "gpu")
    assert waiter.state is State.QUEUED
    assert waiter.explanation.reason is Reason.CAPABILITIES_UNKNOWN
    with_facts(fleet, "box", A_GPU_BOX)
    assert fleet.get(waiter).explanation.reason is Reason.GPU_BUSY
    assert fleet.get(holder).assignment.resources.devices == ("GPU-0",)
    agent.report(holder.assignment.allocation, AgentEvent.ENDED)
    fleet.cycle()
    specs = [launch.spec.resources.devices for launch in agent.launched.values()]
    assert specs == [("GPU-0",), ("GPU-0",)]


def test_the_timeline_of_the_second_native_start_on_a_mac_names_the_holder() -> None:
    """The limit is told in one sentence, with who holds the GPU."""
    fleet, agent = a_device_fleet(A_MAC)
    holder = ask(fleet, 1, "cpu")
    notes = [event.explanation for event in fleet.store.events(holder.id)]
    assert Reason.METAL_RESERVED in {note.reason for note in notes if note}
    agent.serve(holder.assignment.allocation)
    waiter = ask(fleet, 2, "cpu")
    found = fleet.get(waiter).explanation
    assert found.reason is Reason.METAL_BUSY
    assert [item.workload for item in found.holders] == [holder.id]


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_jumps_an_hour_frees_and_doubles_nothing(seconds: int) -> None:
    """Holds end by the machine's word; a promise that a jump breaks says so."""
    fleet = Fleet()
    agent = fleet.machine(cores=2)
    records = [fleet.ask(server) for server in (1, 2, 3)]
    for allocation in sorted(agent.launched):
        agent.serve(allocation)
    fleet.clock.advance(seconds)
    tick(fleet.core)
    fleet.cycle()
    check(fleet)
    assert [fleet.get(record).holds for record in records] == [True, True, False]
    agent.report(records[0].assignment.allocation, AgentEvent.ENDED)
    fleet.cycle()
    check(fleet)
    assert fleet.get(records[2]).holds


def test_a_cpu_start_after_a_failed_gpu_start_holds_no_gpu() -> None:
    """What the first choice held goes with it."""
    fleet, agent = a_device_fleet(A_GPU_BOX)
    first = ask(fleet, 1, "gpu")
    assert first.assignment.resources.devices == ("GPU-0",)
    agent.report(first.assignment.allocation, AgentEvent.FAILED)
    second = fleet.ask(1, profile="lab", class_name="cpu", attempt="second")
    assert second.assignment.resources.devices == ()
    assert fleet.ask(2, profile="lab", class_name="gpu").assignment is not None


def test_another_profile_for_the_same_server_is_what_then_runs() -> None:
    """The newest choice counts: runtime and deadlines are those of its profile."""
    catalog = a_catalog()
    other = catalog.profiles[0].model_copy(
        update={"name": "slow", "deadlines": Deadlines(start_seconds=777)}
    )
    fleet = Fleet(
        catalog=catalog.model_copy(update={"profiles": (*catalog.profiles, other)})
    )
    agent = fleet.machine()
    first = fleet.ask(1)
    agent.serve(first.assignment.allocation)
    agent.report(first.assignment.allocation, AgentEvent.ENDED)
    second = fleet.ask(1, profile="slow", attempt="second")
    spec = agent.launched[second.assignment.allocation].spec
    assert (spec.profile, spec.start_seconds) == ("slow", 777)
    assert second.assignment.runtime.driver is DriverName.NATIVE


def test_an_idle_fleet_holds_nothing() -> None:
    """After the last end there is no allocation, no promise and no epoch left open."""
    fleet = Fleet()
    live_through(fleet)
    planner = fleet.core.engine.planner(fleet.clock.now())
    assert fleet.core.model.issued == {}
    assert len(planner.promises) == 0
    assert all(not entry.holds for entry in planner.fleet.entries.values())
    assert not any(record.holds for record in fleet.core.model.workloads.values())
