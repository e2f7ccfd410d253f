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
from fleet_contracts.workloads import Principal, ServerKey
from fleet_hub.controller.device_index import DeviceIndex
from fleet_hub.controller.people import People
from fleet_hub.controller.ports import Change, Contents
from fleet_hub.controller.records import (
    EnrolmentCode,
    Issued,
    MachineRecord,
    Workload,
)
from fleet_hub.controller.setbacks import Setbacks
from fleet_hub.controller.turns import Turns
from fleet_hub.scheduling.decisions import Wait
from fleet_hub.scheduling.likely import History
from fleet_hub.scheduling.likely_ends import Runs
from fleet_hub.scheduling.snapshot import Idle, Usage as FairUse


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
    protocol: int = 0
    """What its agent speaks; 0: it has not said."""
    inventory_known: bool = False
    silence_told: bool = False
    """Its workloads were marked unknown in this absence."""
    facts: PlacementFacts = field(default_factory=PlacementFacts)
    usage: Usage | None = None
    """How busy it last said that it was."""
    usage_doubted: bool = False
    """It said so in a way that was not understood, which is told once."""
    in_use: tuple[str, ...] = ()
    """The devices that it then saw somebody use, by UUID."""
    used_outside: tuple[tuple[str, int], ...] = ()
    """Those that programs outside the fleet use, with the bytes that those take."""
    unused_memory_bytes: int | None = None
    """How much memory it then saw that nothing uses: told in large steps."""
    observed_at: datetime | None = None
    """When it said so for the first time."""
    resting: dict[str, datetime] = field(default_factory=dict)
    """Since when each device was seen to do nothing, by UUID."""
    quiet_since: datetime | None = None
    """Since when nothing computes on it, by its load; None: something does, or nobody
    knows."""
    idle: tuple[tuple[str, Idle], ...] = ()
    """Who of it is told to be idle, by workload."""
    rested: tuple[tuple[str, float], ...] = ()
    """Those that have done nothing for long enough to be told."""
    pages: dict[str, InventoryItem] = field(default_factory=dict)
    behind: dict[str, InventoryItem] = field(default_factory=dict)
    """Ledger items whose reports have not arrived yet."""
    leftovers: set[str] = field(default_factory=set)
    """Allocations that ended for us and still run there: they hold what they held."""
    foreign: set[tuple[str, int]] = field(default_factory=set)
    """What it runs and we never issued to it."""
    rebooted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLinks:
    """How often a second agent was refused while the first one lived."""

    count: int
    last_at: datetime
    told_at: datetime
    """When it was last written into the audit log."""


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
        self.codes: dict[str, EnrolmentCode] = {}
        """By hash: the enrolment codes that nobody has used yet."""
        self.presence: dict[str, Presence] = {}
        self.waits: dict[str, Wait] = {}
        """What the last cycle said about each waiting workload."""
        self.progress: dict[str, dict[str, tuple[Progress, datetime]]] = {}
        """The latest of each step of a workload that is not written yet."""
        self.usage: dict[int, FairUse] = dict(contents.usage)
        """What each user has used of the fleet lately, ended work only."""
        self.history = History()
        """How the latest waits went, by class."""
        self.runs = Runs()
        """How long the latest runs held what they had, by class."""
        self.turns = Turns()
        """How the latest turns came, and how long those had waited."""
        self.devices = DeviceIndex()
        """What each machine had when the engine last followed it."""
        self.stirred: set[str] = set()
        """Machines of which a link told something that placement looks at."""
        self._unclaimed: set[str] = set()
        self.tried_at: dict[str, datetime] = {}
        """When each machine's address was last tried."""
        self.lifted_at: dict[str, datetime] = {}
        """When each machine last had seen an epoch above all of ours."""
        self.second_links: dict[str, SecondLinks] = {}
        self.setbacks: dict[str, Setbacks] = {}
        """By machine, what went wrong there since a start went well."""
        """The machines for which somebody else tried to speak."""
        self._resting: dict[tuple[str, str], datetime] = {}
        self._waiting: set[str] = set()
        self._holding: dict[str, set[str]] = {}
        self._of_person: People[Principal] = People()
        self._machine_of: dict[str, str] = {}
        self._owned: People[tuple[str, int | None]] = People()
        self._keys: dict[ServerKey, str] = {}
        self._tokens: dict[str, str] = {}
        self._line = 0
        self.apply(
            Change(
                workloads={
                    record.id: record
                    for record in sorted(contents.workloads, key=_last_waited)
                },
                machines={record.name: record for record in contents.machines},
                issued={record.allocation: record for record in contents.issued},
                codes={code.code_hash: code for code in contents.codes},
            )
        )
        self.turns.begin(contents.workloads)

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
            self._know(machine)
        for code_hash, code in change.codes.items():
            if code is None:
                self.codes.pop(code_hash, None)
            else:
                self.codes[code_hash] = code
        self.usage |= change.usage
        if change.generation is not None:
            self.generation, self._counter = change.generation, 0

    def _know(self, machine: MachineRecord) -> None:
        earlier = self.machines.get(machine.name)
        if earlier is not None:
            self._machine_of.pop(earlier.token_hash, None)
            whose = (earlier.owner, earlier.owner_id)
            self._owned.remove(whose, whose, earlier.name)
        whose = (machine.owner, machine.owner_id)
        self._owned.add(whose, whose, machine.name)
        self.machines[machine.name] = machine
        if machine.token_hash:
            self._machine_of[machine.token_hash] = machine.name
        self.presence.setdefault(machine.name, Presence(since=self.started_at))

    def _index(self, record: Workload) -> None:
        earlier, waited = self.workloads.get(record.id), record.waited
        if waited is not None and (earlier is None or earlier.waited != waited):
            self.history.note(waited.class_name, waited.part)
        if record.ran is not None and (earlier is None or earlier.ran != record.ran):
            self.runs.note(record.ran)
        if earlier is not None and earlier.decided != record.decided:
            self.turns.note(record)
        self._unindex(record.id)
        self.workloads[record.id] = record
        self._keys[record.key] = record.id
        self._line = max(self._line, record.line)
        who = record.principal
        self._of_person.add((who.user_id, who.name), who, record.id)
        if record.token_hash is not None:
            self._tokens[record.token_hash] = record.id
        if record.state in WAITING:
            self._waiting.add(record.id)
        else:
            self.waits.pop(record.id, None)
        assignment = record.assignment
        if assignment is not None:
            self._holding.setdefault(assignment.machine, set()).add(record.id)
            if not assignment.launched:
                self._unclaimed.add(record.id)

    def _unindex(self, name: str) -> None:
        """Take out of every index what it says of a workload's earlier record."""
        self._waiting.discard(name)
        self._unclaimed.discard(name)
        record = self.workloads.get(name)
        if record is None:
            return
        who = record.principal
        self._of_person.remove((who.user_id, who.name), who, name)
        if record.token_hash is not None:
            self._tokens.pop(record.token_hash, None)
        if record.assignment is not None:
            self._holding[record.assignment.machine].discard(name)

    def _forget(self, name: str) -> None:
        self._unindex(name)
        record = self.workloads.pop(name, None)
        self.waits.pop(name, None)
        self.progress.pop(name, None)
        if record is not None:
            self._keys.pop(record.key, None)

    def next_epoch(self) -> int:
        """Return an epoch that was never used and never will be again."""
        self._counter += 1
        return (self.generation << _COUNTER_BITS) + self._counter

    def generation_above(self, epoch: int) -> int | None:
        """Return the generation needed to issue above *epoch*; None: ours does."""
        if epoch <= (self.generation << _COUNTER_BITS) + self._counter:
            return None
        return (epoch >> _COUNTER_BITS) + 1

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
        for name in sorted(self._holding.get(machine, ())):
            record = self.workloads[name]
            if record.holds:
                yield record

    def not_called(self, principal: Principal) -> list[Workload]:
        """Return the workloads that know this user, or who else has the name, otherwise.

        Those that know their user as just this *principal* are not looked at.
        """
        persons = (principal.user_id, principal.name)
        found = self._of_person.otherwise(persons, principal)
        return [self.workloads[name] for name in found]

    def with_name(self, name: str) -> list[Workload]:
        """Return the workloads of whoever goes by that name."""
        return [self.workloads[item] for item in self._of_person.of(name)]

    def ids_of_name(self, name: str) -> set[int]:
        """Return the ids of the users who go by that name."""
        return {known.user_id for known in self._of_person.known_of(name)}

    def not_owned_as(self, principal: Principal) -> list[MachineRecord]:
        """Return the machines that know this owner, or who else has the name, otherwise."""
        whose = (principal.name, principal.user_id)
        return [self.machines[name] for name in self._owned.otherwise(whose, whose)]

    def machine_of_token(self, token_hash: str) -> str | None:
        """Return the machine whose token has this hash."""
        return self._machine_of.get(token_hash)

    def begin_presence(self, machine: str, now: datetime) -> Presence:
        """Replace what an earlier link of *machine* said."""
        earlier = self.presence.get(machine)
        self.stirred.add(machine)
        self.presence[machine] = Presence(
            online=True,
            since=now,
            heard_at=now,
            silence_told=earlier.silence_told if earlier else False,
            leftovers=earlier.leftovers if earlier else set(),
        )
        return self.presence[machine]

    def set_aside_until(self, machine: str, now: datetime) -> datetime | None:
        """Return until when *machine* is set aside; None: it is not."""
        setbacks = self.setbacks.get(machine)
        return None if setbacks is None else setbacks.set_aside_until(now)

    def rest(self, workload: str, machine: str, now: datetime) -> None:
        """Remember when *machine* rejected *workload*."""
        self._resting[workload, machine] = now

    def rested(self, before: datetime) -> list[tuple[str, str]]:
        """Return, once, the (workload, machine) pairs whose rest began so early."""
        over = [pair for pair, since in self._resting.items() if since <= before]
        for pair in over:
            del self._resting[pair]
        return over

    def turns_to_claim(self) -> list[Workload]:
        """Return the workloads whose turn has come and that were not launched yet."""
        return [self.workloads[name] for name in sorted(self._unclaimed)]

    def waiting(self) -> list[Workload]:
        """Return the line, in the order of asking."""
        line = [self.workloads[name] for name in self._waiting]
        return sorted(line, key=lambda item: item.line)


def _last_waited(record: Workload) -> float:
    """Return when the last wait of *record* ended: the latest are remembered."""
    return 0.0 if record.waited is None else record.waited.at
