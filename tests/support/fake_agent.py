"""An agent without a machine, which a test plays itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fleet_builders import NOON
from scheduling_builders import GIB

from fleet_contracts.capabilities import (
    AgentDriver,
    Fact,
    HostFacts,
    Observed,
    WorkerCapabilities,
)
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
    decode_to_agent,
    encode,
)
from fleet_contracts.workloads import DriverName
from fleet_hub.adapters.link_registry import LinkRegistry
from fleet_hub.controller.core import Core
from fleet_hub.controller.link_session import LinkSession


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
