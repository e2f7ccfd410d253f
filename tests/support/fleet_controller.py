"""A controller in memory, with an agent and a Hub that a test plays itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fleet_builders import NOON, CountingIds, ManualClock, a_principal

from fleet_contracts.capabilities import (
    AgentDriver,
    Fact,
    HostFacts,
    Observed,
    WorkerCapabilities,
)
from fleet_contracts.catalog import Catalog, Profile, ResourceClass, Runtime
from fleet_contracts.enrolment import answer_to
from fleet_contracts.protocol import (
    PROTOCOL,
    AgentEvent,
    Forget,
    Goodbye,
    Hello,
    Inventory,
    InventoryItem,
    Launch,
    Report,
    Stop,
    ToAgent,
    encode,
)
from fleet_contracts.timeline import TimelineKind
from fleet_contracts.workloads import (
    Accelerator,
    Choice,
    DriverName,
    Principal,
    ServerKey,
)
from fleet_hub.adapters.link_registry import LinkRegistry
from fleet_hub.adapters.memory_store import MemoryStore
from fleet_hub.admission import Ask
from fleet_hub.controller import asking, enrolling
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.core import Core
from fleet_hub.controller.link_session import LinkSession
from fleet_hub.controller.ports import StartAnswer, StartResult, Store
from fleet_hub.controller.records import Workload
from fleet_hub.controller.retelling import AT_A_TIME, retell
from fleet_hub.controller.settings import Settings


GIB = 1 << 30


def a_catalog(**changes: Any) -> Catalog:
    """Return a catalog with one profile in two sizes."""
    values: dict[str, Any] = {
        "classes": (
            ResourceClass(
                name="small", title="Small", cpu_milli=1000, memory_bytes=GIB
            ),
            ResourceClass(
                name="whole", title="Whole", cpu_milli=4000, memory_bytes=GIB
            ),
        ),
        "runtimes": (
            Runtime(
                name="python",
                accelerators=(Accelerator.CPU,),
                driver_refs={DriverName.NATIVE: "secret-ref"},
            ),
        ),
        "profiles": (
            Profile(
                name="jupyter",
                title="JupyterLab",
                classes=("small", "whole"),
                runtimes=("python",),
            ),
        ),
    }
    return Catalog(**(values | changes))


def some_capabilities(
    cores: int = 4, driver: DriverName = DriverName.NATIVE
) -> dict[str, Any]:
    """Return what a Linux machine with *cores* cores says of itself."""
    return WorkerCapabilities(
        host=HostFacts(
            os=Fact(value="linux"),
            architecture=Fact(value="x86_64"),
            apple_silicon=Fact(value=False),
            cores_allowed_milli=Fact(value=cores * 1000),
            memory_allowed_bytes=Fact(value=64 * GIB),
            disk_free_bytes=Fact(value=500 * GIB),
        ),
        drivers=(
            AgentDriver(
                name=driver,
                usable=True,
                observed=Observed(source="test", observed_at=NOON),
            ),
        ),
        settled=True,
    ).model_dump(mode="json")


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


class FakeAgent:
    """An agent without a machine: a ledger, and a link that the test opens and cuts.

    It does nothing by itself; the test lets it accept, serve and end.
    """

    def __init__(self, core: Core, registry: LinkRegistry, machine: str) -> None:
        """Speak for *machine*; ``connect`` opens the link."""
        self.core = core
        self.machine = machine
        self._registry = registry
        self.heard: list[ToAgent] = []
        self.ledger: dict[str, InventoryItem] = {}
        self.launched: dict[str, Launch] = {}
        self.ended: set[str] = set()
        self.said: list[Report] = []
        """The reports of this link."""
        self._held: list[Any] | None = None
        self._epochs: dict[str, int] = {}
        self.session: LinkSession | None = None
        self.boot_id = "boot-1"
        self.ledger_id = "ledger-1"
        self.highest_epoch = 0
        self.capabilities: dict[str, Any] | None = None
        """What it says of itself; None: a Linux machine."""

    # the registry's connection
    def send(self, text: str) -> None:
        """Hear what the controller says."""
        from fleet_contracts.protocol import decode_to_agent  # noqa: PLC0415

        message = decode_to_agent(text)
        self.heard.append(message)
        if isinstance(message, Launch):
            self._take(message)
        elif isinstance(message, Forget):
            self.ledger.pop(message.allocation, None)
        elif isinstance(message, Stop) and message.allocation not in self.launched:
            # One that never came is noted, so that it cannot come.
            self._epochs[message.allocation] = message.epoch
            self.report(message.allocation, AgentEvent.ENDED)

    def dismiss(self, goodbye: Goodbye) -> None:
        """Hear why the link ends, and lose it."""
        self.heard.append(goodbye)
        self.disconnect()

    def probe(self) -> None:
        """Live on."""

    def _take(self, launch: Launch) -> None:
        self.launched[launch.allocation] = launch
        self.highest_epoch = max(self.highest_epoch, launch.epoch)

    def connect(
        self, *, cores: int = 4, protocol: int = PROTOCOL, inventory: bool = True
    ) -> None:
        """Say hello and tell the whole ledger, unless *inventory* is yet to come."""
        self.said.clear()
        self.session = LinkSession(
            self.core,
            self.machine,
            attach=lambda: self._registry.attach(self.machine, self),
            send=lambda message: self.send(encode(message)),
        )
        self.say(
            Hello(
                protocol=protocol,
                agent_version="1",
                boot_id=self.boot_id,
                ledger_id=self.ledger_id,
                highest_epoch=self.highest_epoch,
                capabilities=self.capabilities or some_capabilities(cores),
                inventory_size=len(self.ledger),
            )
        )
        if inventory:
            self.say(Inventory(items=tuple(self.ledger.values()), last=True))

    def say(self, message: Any) -> None:
        """Send *message* up the link."""
        assert self.session is not None
        if self._held is not None:
            self._held.append(message)
            return
        if isinstance(message, Report):
            self.said.append(message)
        self.session.receive(encode(message))

    @contextmanager
    def holding_back(self) -> Iterator[list[Any]]:
        """Collect what is said instead of sending it."""
        self._held = held = []
        try:
            yield held
        finally:
            self._held = None

    def disconnect(self) -> None:
        """Cut the link."""
        if self.session is not None and self._registry.detach(self.machine, self):
            self.session.closed()
        self.session = None
        self.forget_unread()

    def forget_unread(self) -> None:
        """Lose the launches that were under way when the link broke."""
        self.launched = {
            allocation: launch
            for allocation, launch in self.launched.items()
            if allocation in self.ledger or allocation in self.ended
        }

    def report(self, allocation: str, event: AgentEvent, **more: Any) -> None:
        """Note *event* in the ledger and, if linked, report it."""
        launch = self.launched.get(allocation)
        epoch = launch.epoch if launch else self._epochs[allocation]
        known = self.ledger.get(allocation)
        seq = (known.seq if known else 0) + 1
        if event in {AgentEvent.ENDED, AgentEvent.FAILED, AgentEvent.REJECTED}:
            self.ended.add(allocation)
        if event not in {AgentEvent.PROGRESS, AgentEvent.NOTE}:
            self.ledger[allocation] = InventoryItem(
                allocation=allocation,
                epoch=epoch,
                event=event,
                seq=seq,
                url=more.get("url"),
                explanation=more.get("explanation"),
            )
        elif known is not None:
            self.ledger[allocation] = known.model_copy(update={"seq": seq})
        if self.session is not None:
            self.say(
                Report(
                    allocation=allocation,
                    epoch=epoch,
                    seq=seq,
                    at=self.core.clock.now(),
                    event=event,
                    **more,
                )
            )

    def serve(self, allocation: str) -> None:
        """Take an allocation all the way to a ready server."""
        self.report(allocation, AgentEvent.ACCEPTED)
        self.report(allocation, AgentEvent.PREPARED)
        self.report(
            allocation, AgentEvent.SERVING, url=f"http://127.0.0.1:5000/{allocation}/"
        )

    def stops(self) -> list[Stop]:
        """Return the stops that it was told."""
        return [message for message in self.heard if isinstance(message, Stop)]


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
