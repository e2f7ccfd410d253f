"""A controller in memory, with an agent and a Hub that a test plays itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from controller_catalogs import a_catalog
from fake_agent import FakeAgent
from fleet_builders import CountingIds, ManualClock, a_principal

from fleet_contracts.catalog import Catalog
from fleet_contracts.enrolment import answer_to
from fleet_contracts.timeline import TimelineKind
from fleet_contracts.workloads import Choice, Principal, ServerKey
from fleet_hub.adapters.link_registry import LinkRegistry
from fleet_hub.adapters.memory_store import MemoryStore
from fleet_hub.admission import Ask
from fleet_hub.controller import asking, enrolling
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.core import Core
from fleet_hub.controller.ports import StartAnswer, StartResult, Store
from fleet_hub.controller.records import Workload
from fleet_hub.controller.retelling import AT_A_TIME, retell
from fleet_hub.controller.settings import Settings


class FixedCatalog:
    """A catalog that a test may exchange."""

    def __init__(self, catalog: Catalog) -> None:
        """Begin with *catalog*."""
        self.catalog = catalog

    def current(self) -> Catalog:
        """Return it."""
        return self.catalog


@dataclass
class ScriptedHub:
    """A Hub that answers as the test says, and remembers what it was asked."""

    answer: StartResult = StartResult(answer=StartAnswer.UNDER_WAY)  # noqa: RUF009 - frozen
    started: list[tuple[str, str]] = field(default_factory=list)

    async def start_server(self, user: str, server_name: str) -> StartResult:
        """Answer."""
        self.started.append((user, server_name))
        return self.answer

    async def check_routes(self) -> bool:
        """Have nothing to route."""
        return True


@dataclass
class ScriptedNetwork:
    """A network in which each address answers as the test says."""

    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hubs: set[str] = field(default_factory=set)
    keys: dict[str, str] = field(default_factory=dict)
    """By address: the key of whoever listens there."""
    tried: list[tuple[str, int]] = field(default_factory=list)

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return what the test named, or the address itself."""
        return self.names.get(host, () if host[-1:].isalpha() else (host,))

    async def try_address(self, address: str, port: int, nonce: str) -> str | None:
        """Answer with the key of whoever listens there."""
        self.tried.append((address, port))
        key = self.keys.get(address)
        return None if key is None else answer_to(nonce, key)

    def is_hubs(self, address: str) -> bool:
        """Whether the test says so."""
        return address in self.hubs


class Fleet:
    """A controller with its ports, as one process; ``restarted`` is the next."""

    def __init__(
        self,
        store: Store | None = None,
        clock: ManualClock | None = None,
        *,
        settings: Settings | None = None,
        catalog: Catalog | None = None,
        network: ScriptedNetwork | None = None,
        process: int = 1,
    ) -> None:
        """Begin with an empty store, unless one is given."""
        self.store = store or MemoryStore()
        self.clock = clock or ManualClock()
        self.hub = ScriptedHub()
        self.registry = LinkRegistry()
        self.catalogs = FixedCatalog(catalog or a_catalog())
        self._settings = settings
        self._process = process
        self.network = network or ScriptedNetwork()
        self.core = Core(
            store=self.store,
            links=self.registry,
            hub=self.hub,
            clock=self.clock,
            ids=CountingIds(f"p{process}"),
            catalogs=self.catalogs,
            network=self.network,
            settings=settings,
        )
        self.agents: dict[str, FakeAgent] = {}

    def restarted(self) -> Fleet:
        """Return what the next process finds after a kill of this one."""
        assert isinstance(self.store, MemoryStore)
        again = Fleet(
            self.store.reopened(),
            self.clock,
            settings=self._settings,
            catalog=self.catalogs.catalog,
            network=self.network,
            process=self._process + 1,
        )
        for name, agent in self.agents.items():
            agent.session = None
            agent.forget_unread()
            agent.core, agent._registry = again.core, again.registry
            again.agents[name] = agent
        return again

    def machine(
        self,
        name: str = "box",
        *,
        owner: str = "alice",
        cores: int = 4,
        capabilities: dict[str, Any] | None = None,
    ) -> FakeAgent:
        """Enrol a machine and connect its agent."""
        enrolling.enrol(self.core, name=name, owner=owner, local=True)
        agent = FakeAgent(self.core, self.registry, name)
        agent.capabilities = capabilities
        self.agents[name] = agent
        agent.connect(cores=cores)
        self.cycle()
        return agent

    def cycle(self) -> None:
        """Let the controller decide everything, and tell everybody."""
        while run_cycle(self.core).is_unfinished:
            pass
        while retell(self.core, AT_A_TIME):
            pass

    @contextmanager
    def attending(self, workload: str) -> Iterator[None]:
        """Play a Hub whose start waits for *workload*."""
        attended = self.core.attended
        attended[workload] = attended.get(workload, 0) + 1
        try:
            yield
        finally:
            attended[workload] -= 1

    def ask(
        self,
        server_id: int = 1,
        *,
        attended: bool = True,
        class_name: str = "small",
        **changes: Any,
    ) -> Workload:
        """Ask for a server, let the controller decide, and return the workload."""
        request = an_ask(server_id, class_name=class_name, **changes)
        record = asking.ask(self.core, request)
        if attended:
            self.core.attended[record.id] = 1
        self.cycle()
        return self.core.model.workloads[record.id]

    def get(self, workload: Workload | str) -> Workload:
        """Return a workload as it is now."""
        name = workload if isinstance(workload, str) else workload.id
        return self.core.model.workloads[name]


def an_ask(
    server_id: int = 1,
    *,
    principal: Principal | None = None,
    attempt: str = "first",
    class_name: str | None = "small",
    profile: str = "jupyter",
    **changes: Any,
) -> Ask:
    """Return a start of one of alice's servers."""
    principal = principal or a_principal()
    values: dict[str, Any] = {
        "key": ServerKey(user_id=principal.user_id, server_id=server_id),
        "attempt": attempt,
        "principal": principal,
        "server_name": "" if server_id == 1 else f"server-{server_id}",
        "choice": Choice.model_validate({"profile": profile, "class": class_name}),
        "environment": {"JUPYTERHUB_API_TOKEN": f"hub-token-of-{attempt}"},
    }
    return Ask(**(values | changes))


def allocation_of(record: Workload) -> str:
    """Return the allocation that *record* holds."""
    assert record.assignment is not None
    return record.assignment.allocation


def a_ready_server(
    fleet: Fleet, agent: FakeAgent, class_name: str = "whole"
) -> Workload:
    """Return a server that is ready, and holds the whole machine by default."""
    record = fleet.ask(class_name=class_name)
    agent.serve(allocation_of(record))
    return fleet.get(record)


def kinds(fleet: Fleet, record: Workload) -> list[TimelineKind]:
    """Return the timeline's entries by kind."""
    return [event.kind for event in fleet.store.events(record.id)]
