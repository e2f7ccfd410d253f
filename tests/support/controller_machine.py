"""Whatever happens in whatever order: nothing twice, nothing beyond, nothing lost."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from controller_catalogs import a_catalog
from fake_agent import FakeAgent
from fleet_builders import NOON
from fleet_controller import Fleet, an_ask
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from scheduling_builders import GIB
from typing_extensions import override

from fleet_contracts.allocations import ENDED, HOLDING, State
from fleet_contracts.catalog import ResourceClass
from fleet_contracts.protocol import AgentEvent, Heartbeat
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import ServerKey
from fleet_hub.adapters.memory_store import MemoryStore
from fleet_hub.controller import asking, stopping
from fleet_hub.controller.claiming import Claims
from fleet_hub.controller.errors import RequestRefusedError, StoreWriteError
from fleet_hub.controller.model import WAITING
from fleet_hub.controller.ports import Change, StartAnswer, StartResult
from fleet_hub.controller.ticking import tick
from fleet_hub.controller.timelines import timeline_of


CORES = {"large": 6, "small": 2}
LIMITED = a_catalog(
    classes=tuple(
        ResourceClass(
            name=name,
            title=name,
            cpu_milli=cores * 1000,
            memory_bytes=GIB,
            limit_seconds=limit,
        )
        for name, cores, limit in (("small", 1, 600), ("whole", 4, 1800))
    )
)
SERVERS = st.integers(1, 8)
MACHINES = st.sampled_from(sorted(CORES))
OVER = {AgentEvent.ENDED, AgentEvent.FAILED, AgentEvent.REJECTED}
NEXT = {
    None: AgentEvent.ACCEPTED,
    AgentEvent.ACCEPTED: AgentEvent.PREPARED,
    AgentEvent.PREPARED: AgentEvent.SERVING,
}


class FallibleStore(MemoryStore):
    """A store on a disk that is full when a test says so."""

    is_full = False

    @override
    def commit(self, change: Change) -> None:
        if self.is_full:
            raise StoreWriteError("the disk is full")
        super().commit(change)

    @override
    def reopened(self) -> FallibleStore:
        again, kept = FallibleStore(), super().reopened()
        again.__dict__.update(kept.__dict__)
        return again


class ControllerMachine(RuleBasedStateMachine):
    """A controller, two machines and one user who does everything at once."""

    def __init__(self) -> None:
        """Begin before anything is enrolled."""
        super().__init__()
        self.fleet = Fleet(FallibleStore(), catalog=LIMITED)
        self.attempt = 0
        self.promised: dict[str, tuple[int, float, int]] = {}
        """Generation, promise and broken promises so far, by waiting workload."""
        self.order: list[str] = []
        """Workloads in the order in which they joined the line."""

    @initialize()
    def enrol(self) -> None:
        """Two machines of different size."""
        for name, cores in CORES.items():
            self.fleet.machine(name, cores=cores)
        for server in (1, 2, 3):
            self.ask(server, "whole", is_new=True, attended=True)

    # ------------------------------------------------------------- the Hub's side
    @rule(
        server=SERVERS,
        class_name=st.sampled_from(["small", "whole"]),
        is_new=st.booleans(),
        attended=st.booleans(),
    )
    def ask(
        self, server: int, class_name: str, *, is_new: bool, attended: bool
    ) -> None:
        """Ask, again or anew, and stay or go."""
        record = self.known(server)
        if record is not None and record.stop is not None:
            return
        self.attempt += is_new
        request = an_ask(server, class_name=class_name, attempt=str(self.attempt))
        record = asking.ask(self.fleet.core, request)
        self.fleet.core.attended[record.id] = int(attended)
        self.fleet.cycle()

    @rule(data=st.data(), class_name=st.sampled_from(["small", "whole", "whole"]))
    def crowd(self, data: Any, class_name: str) -> None:
        """Several people come at once, and stay."""
        for server in data.draw(st.sets(SERVERS, min_size=3)):
            self.ask(server, class_name, is_new=True, attended=True)

    @precondition(lambda self: self.fleet.core.model.workloads)
    @rule(server=SERVERS)
    def hang_up(self, server: int) -> None:
        """The Hub dies; nothing is given back."""
        record = self.known(server)
        if record is not None:
            self.fleet.core.attended.pop(record.id, None)

    @precondition(lambda self: self.fleet.core.model.workloads)
    @rule(server=SERVERS)
    def park(self, server: int) -> None:
        """The Hub lets go of a start."""
        record = self.known(server)
        if record is not None:
            stopping.park(self.fleet.core, record.id)
            self.fleet.core.attended.pop(record.id, None)

    @precondition(lambda self: self.fleet.core.model.workloads)
    @rule(server=SERVERS, by=st.sampled_from(["user", "admin", "hub"]))
    def stop(self, server: int, by: str) -> None:
        """Somebody stops it."""
        record = self.known(server)
        if record is not None:
            stopping.stop(self.fleet.core, record, by=by)

    @precondition(lambda self: self.fleet.core.model.workloads)
    @rule(server=SERVERS)
    def leave(self, server: int) -> None:
        """The user leaves the line."""
        record = self.known(server)
        if record is not None:
            try:
                stopping.leave(self.fleet.core, record)
            except RequestRefusedError:
                assert record.ready_at is not None

    @precondition(lambda self: self.fleet.core.model.workloads)
    @rule(server=SERVERS)
    def retire(self, server: int) -> None:
        """The server is deleted."""
        record = self.known(server)
        if record is not None:
            stopping.retire(self.fleet.core, record)

    @precondition(lambda self: self.fleet.core.model.workloads)
    @rule(server=SERVERS, answer=st.sampled_from(list(StartAnswer)))
    def hub_answers(self, server: int, answer: StartAnswer) -> None:
        """The Hub answers the controller's request for a start."""
        record = self.known(server)
        if record is not None:
            Claims(self.fleet.core).answered(record.id, StartResult(answer=answer))

    # ----------------------------------------------------------- the agents' side
    @rule(machine=MACHINES, data=st.data())
    def go_on(self, machine: str, data: Any) -> None:
        """An agent takes one of its allocations a step further, or ends it."""
        agent = self.fleet.agents[machine]
        running = sorted(self.running(agent))
        if not running:
            return
        allocation = data.draw(st.sampled_from(running))
        known = agent.ledger.get(allocation)
        reached = known.event if known else None
        choices = [AgentEvent.FAILED, AgentEvent.ENDED]
        if reached in NEXT:
            choices = [NEXT[reached]] * 3 + choices
        if reached in {None, AgentEvent.ACCEPTED}:
            choices.append(AgentEvent.REJECTED)
        event = data.draw(st.sampled_from(choices))
        agent.report(
            allocation,
            event,
            url="http://127.0.0.1:1/" if event is AgentEvent.SERVING else None,
            explanation=Explanation(reason=Reason.AGENT_REJECTED)
            if event is AgentEvent.REJECTED
            else None,
        )

    @rule(machine=MACHINES, data=st.data())
    def repeat(self, machine: str, data: Any) -> None:
        """Something that the agent said on this link comes again, late."""
        agent = self.fleet.agents[machine]
        if agent.session is not None and agent.said:
            agent.say(data.draw(st.sampled_from(agent.said)))

    @rule(machine=MACHINES)
    def swap(self, machine: str) -> None:
        """Two reports arrive in the wrong order."""
        agent = self.fleet.agents[machine]
        fresh = sorted(self.running(agent) - agent.ledger.keys())
        if agent.session is None or not fresh:
            return
        with agent.holding_back() as held:
            agent.report(fresh[0], AgentEvent.ACCEPTED)
            agent.report(fresh[0], AgentEvent.PREPARED)
        for message in reversed(held):
            agent.say(message)

    @rule(machine=MACHINES)
    def serve(self, machine: str) -> None:
        """Everything that an agent was told to launch becomes ready."""
        agent = self.fleet.agents[machine]
        for allocation in sorted(self.running(agent)):
            if allocation not in agent.ledger:
                agent.serve(allocation)

    @rule(machine=MACHINES)
    def drop_and_return(self, machine: str) -> None:
        """The link breaks for a moment."""
        self.disconnect(machine)
        self.connect(machine)
        self.fleet.cycle()

    @rule(machine=MACHINES)
    def disconnect(self, machine: str) -> None:
        """The link breaks."""
        self.fleet.agents[machine].disconnect()

    @rule(machine=MACHINES)
    def connect(self, machine: str) -> None:
        """The agent dials again, and owes nothing afterwards."""
        agent = self.fleet.agents[machine]
        if agent.session is None:
            agent.connect(cores=CORES[machine])
            agent.say(Heartbeat(sent_at=NOON))

    @rule(machine=MACHINES)
    def declare_lost(self, machine: str) -> None:
        """An admin gives a silent machine up; it may come back all the same."""
        if self.fleet.agents[machine].session is None:
            stopping.declare_lost(self.fleet.core, machine)

    # -------------------------------------------------------- time and the process
    @rule(seconds=st.sampled_from([1, 20, 40, 130]))
    def wait(self, seconds: int) -> None:
        """Time goes by."""
        self.fleet.clock.advance(seconds)
        tick(self.fleet.core)

    @rule(seconds=st.sampled_from([-86_400, -3600, 3600, 86_400]))
    def jump(self, seconds: int) -> None:
        """Somebody sets the clock."""
        self.fleet.clock.advance(seconds)
        tick(self.fleet.core)

    @rule()
    def cycle(self) -> None:
        """The controller decides, and a look at everybody is no news."""
        self.fleet.cycle()
        now = self.fleet.clock.now()
        assert self.fleet.core.engine.sweep(now, most=1000) == 0

    @rule()
    def cycle_on_a_full_disk(self) -> None:
        """Whatever it decides cannot be written: nothing of it happens."""
        store = self.fleet.store
        assert isinstance(store, FallibleStore)
        store.is_full = True
        with suppress(StoreWriteError):
            self.fleet.cycle()
        store.is_full = False
        self.fleet.core.want_cycle()

    @precondition(lambda self: self.fleet.agents)
    @rule(returns=st.sampled_from([True, True, True, False]))
    def kill(self, *, returns: bool) -> None:
        """The controller is killed and starts again from its store."""
        self.fleet = self.fleet.restarted()
        for machine in sorted(self.fleet.agents) if returns else ():
            self.connect(machine)
        self.fleet.cycle()

    # ------------------------------------------------------------------- helpers
    def known(self, server: int) -> Any:
        """Return the workload of a server, if there is one."""
        return self.fleet.core.model.by_key(ServerKey(user_id=1, server_id=server))

    def running(self, agent: FakeAgent) -> set[str]:
        """Return what really runs on a machine, whatever the controller believes."""
        return {
            allocation for allocation in agent.launched if allocation not in agent.ended
        }

    # ---------------------------------------------------------------- invariants
    @invariant()
    def nothing_runs_beyond_a_machines_capacity(self) -> None:
        """The sum of what really runs fits, at every moment."""
        for name, agent in self.fleet.agents.items():
            used = sum(
                agent.launched[allocation].spec.resources.cpu_milli
                for allocation in self.running(agent)
            )
            assert used <= CORES[name] * 1000, name

    @invariant()
    def what_is_held_is_held_once_and_by_somebody(self) -> None:
        """Every open allocation has its one workload, and the other way round."""
        model = self.fleet.core.model
        open_ones = {
            item.allocation: item for item in model.issued.values() if item.open
        }
        held = {}
        for record in model.workloads.values():
            assert (record.state in HOLDING) == (record.assignment is not None)
            if record.assignment is not None:
                held[record.assignment.allocation] = record
        assert open_ones.keys() == held.keys()
        for allocation, record in held.items():
            assert record.assignment is not None
            assert open_ones[allocation].workload == record.id
            assert open_ones[allocation].epoch == record.assignment.epoch

    @invariant()
    def what_runs_is_known(self) -> None:
        """Nothing runs on a machine that the truth has no row for."""
        for agent in self.fleet.agents.values():
            for allocation in self.running(agent):
                assert allocation in self.fleet.core.model.issued

    @invariant()
    def secrets_are_kept_exactly_as_long_as_a_launch_may_need_them(self) -> None:
        """Scrubbed when ready or over; there while it waits or begins."""
        for record in self.fleet.core.model.workloads.values():
            secrets = self.fleet.store.secrets(record.id)
            if record.state in ENDED or record.ready_at is not None:
                assert secrets is None
            elif record.state is not State.UNKNOWN and record.stop is None:
                assert secrets is not None

    @invariant()
    def no_start_is_put_off_without_its_cause(self) -> None:
        """A promise moves later, or goes, only with an entry that says why."""
        for record in self.fleet.core.model.workloads.values():
            if record.state not in WAITING or record.assignment is not None:
                self.promised.pop(record.id, None)
                continue
            broken = sum(
                event.explanation is not None
                and event.explanation.reason is Reason.PROMISE_BROKEN
                for event in self.fleet.store.events(record.id)
            )
            before = self.promised.get(record.id)
            promise = record.promise
            if before is not None and before[0] == record.generation:
                is_later = promise is None or promise > before[1] + 1
                assert not is_later or broken > before[2], record.id
            if promise is None:
                self.promised.pop(record.id, None)
            else:
                self.promised[record.id] = (record.generation, promise, broken)

    @invariant()
    def epochs_only_grow(self) -> None:
        """None was ever used twice."""
        for agent in self.fleet.agents.values():
            epochs = [launch.epoch for launch in agent.launched.values()]
            assert len(set(epochs)) == len(epochs)

    @invariant()
    def every_timeline_can_be_read(self) -> None:
        """The document is valid, gapless at its end, and agrees with the state."""
        for record in self.fleet.core.model.workloads.values():
            document = timeline_of(self.fleet.core, record)
            assert document.state is record.state
            assert document.headline
            numbers = [event.seq for event in document.events]
            assert numbers == sorted(set(numbers))
            if numbers:
                assert numbers[-1] == record.last_seq

    def teardown(self) -> None:
        """In the end everybody comes back, everything stops, and all is free."""
        if not self.fleet.agents:
            return
        core = self.fleet.core
        for record in list(core.model.workloads.values()):
            stopping.stop(core, record)
        for name, agent in self.fleet.agents.items():
            agent.disconnect()
            agent.connect(cores=CORES[name])
            agent.say(Heartbeat(sent_at=NOON))
            for allocation in self.running(agent):
                agent.report(allocation, AgentEvent.ENDED)
            agent.disconnect()
            agent.connect(cores=CORES[name])
        assert not any(record.holds for record in core.model.workloads.values())
        assert core.model.issued == {}
        for agent in self.fleet.agents.values():
            assert agent.ledger == {}
