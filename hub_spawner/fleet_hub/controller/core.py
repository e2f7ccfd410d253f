"""The one place through which everything changes: decide, make durable, then tell.

``Core.transaction`` collects what a use case decides.  On leaving it the store has
the whole change before the model shows it, and only then are agents told and readers
woken.  If the store cannot be written, nothing has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from fleet_contracts.allocations import Event, advance
from fleet_contracts.protocol import ToAgent
from fleet_contracts.reasons import Explanation
from fleet_contracts.timeline import Progress, TimelineEvent, TimelineKind
from fleet_hub.controller.engine import Engine
from fleet_hub.controller.model import Model
from fleet_hub.controller.observing import Observer
from fleet_hub.controller.ports import (
    AgentLinks,
    Catalogs,
    Change,
    Clock,
    HubApi,
    Ids,
    Network,
    NoNetwork,
    Store,
)
from fleet_hub.controller.records import Secrets, Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.controller.watch import Watchers


class Core:
    """The controller's state and its way out into the world."""

    def __init__(
        self,
        *,
        store: Store,
        links: AgentLinks,
        hub: HubApi,
        clock: Clock,
        ids: Ids,
        catalogs: Catalogs,
        network: Network | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Take over the store; every port is in place from here on."""
        self.store = store
        self.links = links
        self.hub = hub
        self.clock = clock
        self.ids = ids
        self.catalogs = catalogs
        self.network = network or NoNetwork()
        self.settings = settings or Settings()
        self.model = Model(store.load(), clock.now())
        self.engine = Engine(self.model, catalogs, self.settings)
        self.watchers = Watchers()
        self.observers: list[Observer] = []
        self.attended: dict[str, int] = {}
        """How many open starts attend each workload."""
        self.wanted = True
        """Something happened that the admission cycle has not seen."""
        self.recovered = False
        """The time in which agents are expected back after a start is over."""
        self.on_wanted: Callable[[], None] = lambda: None

    def want_cycle(self) -> None:
        """Ask for an admission cycle, soon."""
        self.wanted = True
        self.on_wanted()

    def is_attended(self, workload: str) -> bool:
        """Whether a start of the Hub waits for *workload* right now."""
        return self.attended.get(workload, 0) > 0

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Collect one decision; it takes effect on leaving, or not at all.

        Raises:
            StoreWriteError: it could not be made durable.
        """
        transaction = Transaction(self)
        yield transaction
        change = transaction.change
        if change:
            self.store.commit(change)
            self.engine.note(change)
            self.model.apply(change)
            for observer in self.observers:
                observer.changed(change)
        for machine, message in transaction.messages:
            self.links.send(machine, message)
        if change:
            self.watchers.notify(change.workloads.keys() | change.removed)
            self.want_cycle()


class Transaction:
    """What one use case decides.  Reads see what it has already put."""

    def __init__(self, core: Core) -> None:
        """Begin with nothing."""
        self._core = core
        self.now: datetime = core.clock.now()
        self.change = Change()
        self.messages: list[tuple[str, ToAgent]] = []

    def workload(self, name: str) -> Workload:
        """Return a workload as of now."""
        return self.change.workloads.get(name) or self._core.model.workloads[name]

    def put(self, record: Workload) -> Workload:
        """Keep *record* in place of the earlier one."""
        self.change.workloads[record.id] = record
        return record

    def tell(self, machine: str, message: ToAgent) -> None:
        """Send *message* once the decision is durable."""
        self.messages.append((machine, message))

    def use(self, record: Workload) -> None:
        """Count what *record* has held until now against its user's fair share."""
        used = self._core.engine.settle(record, self.now, self.change.usage)
        if used is not None:
            self.change.usage[record.principal.user_id] = used

    def secrets(self, workload: str) -> Secrets | None:
        """Return what a launch needs, as of now."""
        if workload in self.change.secrets:
            return self.change.secrets[workload]
        return self._core.store.secrets(workload)

    def record(
        self,
        record: Workload,
        kind: TimelineKind,
        *,
        actor: str = "controller",
        explanation: Explanation | None = None,
        progress: Progress | None = None,
        at: datetime | None = None,
    ) -> Workload:
        """Write one entry of the timeline and return the workload with its number."""
        assignment = record.assignment
        event = TimelineEvent(
            seq=record.last_seq + 1,
            generation=record.generation,
            at=at or self.now,
            kind=kind,
            state=record.state,
            actor=actor,
            machine=assignment.machine if assignment else None,
            explanation=explanation,
            progress=progress,
        )
        self.change.events.append((record.id, event))
        return self.put(replace(record, last_seq=event.seq))

    def advance(self, record: Workload, event: Event, **changes: Any) -> Workload:
        """Move *record* along the table of states, with whatever else changes.

        Raises:
            IllegalTransitionError: *event* cannot happen now.
        """
        return self.put(replace(record, state=advance(record.state, event), **changes))
