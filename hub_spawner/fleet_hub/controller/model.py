"""What the controller knows now: the durable records, and what only a link tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from fleet_contracts.allocations import State
from fleet_contracts.capabilities import Usage
from fleet_contracts.placement_facts import PlacementFacts
from fleet_contracts.protocol import InventoryItem
from fleet_contracts.timeline import Progress
from fleet_contracts.workloads import ServerKey
from fleet_hub.controller.ports import Change, Contents
from fleet_hub.controller.records import Issued, MachineRecord, Workload
from fleet_hub.scheduling.decisions import Wait


_COUNTER_BITS = 32
WAITING = frozenset({State.REQUESTED, State.QUEUED})
"""The states in which a workload stands in the line."""


@dataclass(slots=True, kw_only=True)
class Presence:
    """A machine as this process sees it: it begins anew with every link."""

    online: bool = False
    since: datetime
    """When it came, or went."""
    heard_at: datetime | None = None
    inventory_known: bool = False
    silence_told: bool = False
    """Its workloads were marked unknown in this absence."""
    facts: PlacementFacts = field(default_factory=PlacementFacts)
    usage: Usage | None = None
    """How busy it last said that it was; placement does not look at it."""
    pages: dict[str, InventoryItem] = field(default_factory=dict)
    behind: dict[str, InventoryItem] = field(default_factory=dict)
    """Ledger items whose reports have not arrived yet."""
    leftovers: set[str] = field(default_factory=set)
    """Allocations that ended for us and still run there: they hold what they held."""
    foreign: set[tuple[str, int]] = field(default_factory=set)
    """What it runs and we never issued to it."""
    lost_ledger: bool = False
    rebooted: bool = False


class Model:
    """The fleet in memory.  Only ``apply`` changes durable records."""

    def __init__(self, contents: Contents, started_at: datetime) -> None:
        """Take over what the store held."""
        self.started_at = started_at
        self.generation = contents.generation
        self._counter = 0
        self.workloads: dict[str, Workload] = {}
        self.machines: dict[str, MachineRecord] = {}
        self.issued: dict[str, Issued] = {}
        self.presence: dict[str, Presence] = {}
        self.waits: dict[str, Wait] = {}
        """What the last cycle said about each waiting workload."""
        self.progress: dict[str, tuple[Progress, datetime]] = {}
        """The latest progress of a workload that is not written yet."""
        self._resting: dict[tuple[str, str], datetime] = {}
        self._keys: dict[ServerKey, str] = {}
        self._tokens: dict[str, str] = {}
        self._line = 0
        self.apply(
            Change(
                workloads={record.id: record for record in contents.workloads},
                machines={record.name: record for record in contents.machines},
                issued={record.allocation: record for record in contents.issued},
            )
        )

    def apply(self, change: Change) -> None:
        """Take over what has just become durable."""
        for name in change.removed:
            self._forget(name)
        for record in change.workloads.values():
            self._index(record)
        for allocation, issued in change.issued.items():
            if issued is None:
                self.issued.pop(allocation, None)
            else:
                self.issued[allocation] = issued
        for machine in change.machines.values():
            self.machines[machine.name] = machine
            self.presence.setdefault(machine.name, Presence(since=self.started_at))
        if change.generation is not None:
            self.generation, self._counter = change.generation, 0

    def _index(self, record: Workload) -> None:
        earlier = self.workloads.get(record.id)
        if earlier is not None and earlier.token_hash is not None:
            self._tokens.pop(earlier.token_hash, None)
        self.workloads[record.id] = record
        self._keys[record.key] = record.id
        self._line = max(self._line, record.line)
        if record.token_hash is not None:
            self._tokens[record.token_hash] = record.id
        if record.state not in WAITING:
            self.waits.pop(record.id, None)

    def _forget(self, name: str) -> None:
        record = self.workloads.pop(name, None)
        self.waits.pop(name, None)
        self.progress.pop(name, None)
        if record is not None:
            self._keys.pop(record.key, None)
            if record.token_hash is not None:
                self._tokens.pop(record.token_hash, None)

    def next_epoch(self) -> int:
        """Return an epoch that was never used and never will be again."""
        self._counter += 1
        return (self.generation << _COUNTER_BITS) + self._counter

    def generation_above(self, epoch: int) -> int | None:
        """Return the generation needed to issue above *epoch*; None: ours does."""
        needed = (epoch >> _COUNTER_BITS) + 1
        return needed if needed > self.generation else None

    def next_line(self) -> int:
        """Return the place behind everybody who has asked."""
        self._line += 1
        return self._line

    def by_key(self, key: ServerKey) -> Workload | None:
        """Return the workload of one server, if the controller knows it."""
        name = self._keys.get(key)
        return None if name is None else self.workloads[name]

    def by_token_hash(self, token_hash: str) -> Workload | None:
        """Return the workload whose timeline token has this hash."""
        name = self._tokens.get(token_hash)
        return None if name is None else self.workloads[name]

    def by_allocation(self, allocation: str, epoch: int) -> Workload | None:
        """Return the workload that holds this allocation now."""
        issued = self.issued.get(allocation)
        if issued is None or not issued.open or issued.epoch != epoch:
            return None
        return self.workloads.get(issued.workload)

    def holders(self, machine: str) -> Iterator[Workload]:
        """Yield the workloads that hold something of *machine*."""
        for record in self.workloads.values():
            assignment = record.assignment
            if record.holds and assignment and assignment.machine == machine:
                yield record

    def begin_presence(self, machine: str, now: datetime) -> Presence:
        """Replace what an earlier link of *machine* said."""
        earlier = self.presence.get(machine)
        self.presence[machine] = Presence(
            online=True,
            since=now,
            heard_at=now,
            silence_told=earlier.silence_told if earlier else False,
            leftovers=earlier.leftovers if earlier else set(),
        )
        return self.presence[machine]

    def rest(self, workload: str, machine: str, now: datetime) -> None:
        """Remember when *machine* rejected *workload*."""
        self._resting[workload, machine] = now

    def rested(self, before: datetime) -> list[tuple[str, str]]:
        """Return, once, the (workload, machine) pairs whose rest began so early."""
        over = [pair for pair, since in self._resting.items() if since <= before]
        for pair in over:
            del self._resting[pair]
        return over

    def waiting(self) -> list[Workload]:
        """Return the line, in the order of asking."""
        line = [item for item in self.workloads.values() if item.state in WAITING]
        return sorted(line, key=lambda item: item.line)
