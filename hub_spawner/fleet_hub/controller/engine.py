"""The engine beside the model: it hears of every change, and is kept from cycle to cycle.

What it has decided and what is durable must not part: where a decision could not be
written, the engine is thrown away and built again from what is true.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from typing import Final

from fleet_contracts.allocations import State
from fleet_contracts.causes import Cause
from fleet_hub.controller import same_devices
from fleet_hub.controller.model import WAITING, Model
from fleet_hub.controller.ports import Catalogs, Change
from fleet_hub.controller.records import Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.controller.states import (
    held_by,
    is_recovering,
    machine_state,
    waiting_of,
    whole_fleet,
)
from fleet_hub.scheduling.decisions import Plan
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import MachineState, Ranking, Usage, Waiting


MOST_TURNS: Final = 8
"""How many turns one cycle takes: a few milliseconds' work on any fleet."""


class Engine:
    """One planner that follows one model."""

    def __init__(self, model: Model, catalogs: Catalogs, settings: Settings) -> None:
        """Begin without a planner: the first look builds it."""
        self._model = model
        self._catalogs = catalogs
        self._settings = settings
        self._planner: Planner | None = None
        self._workloads: set[str] = set()
        self._machines: set[str] = set()
        self._holders: set[tuple[str, str]] = set()
        """Machines and the workloads that hold another thing of them, or nothing."""
        self._revision = 0
        """Counts the cycles: each may have changed everybody's answer."""
        self._told: dict[str, int] = {}
        """As of which cycle each one in the line was told."""
        self._round: deque[str] = deque()
        self._round_of = 0
        self._watched: dict[str, None] = {}
        """Those who may have another answer, and somebody looks at theirs."""
        self._urgent: dict[str, None] = {}
        """Those who were never told anything, or whose promise broke."""
        self._swept: Iterator[str] = iter(())
        self._look_again_at: float | None = None
        self.rescues = 0
        """What a sweep found and no event had brought up; stays 0."""

    def note(self, change: Change) -> None:
        """Remember what *change* is about; called before the model takes it over."""
        if self._planner is None:
            return
        known = self._model.workloads
        for name in change.workloads.keys() | change.removed:
            old, new = known.get(name), change.workloads.get(name)
            if old is not None and new is not None and _is_alike(old, new):
                continue
            self._workloads.add(name)
            self._note_holder(old)
            self._note_holder(new)
            self._note_fresh(new)
        self._machines |= change.machines.keys()

    def forget(self) -> None:
        """What was decided did not become durable: begin again from the model."""
        self._planner = None

    def decide(self, now: datetime) -> Plan:
        """Decide what can be decided at *now*, as much as one go may take."""
        planner = self.planner(now)
        plan = planner.decide(now.timestamp(), most_turns=MOST_TURNS)
        self._urgent.update(dict.fromkeys(planner.take_let_down()))
        self._look_again_at = plan.look_again_at
        return plan

    def is_due(self, now: datetime) -> bool:
        """Whether time alone may have changed something."""
        at = self._look_again_at
        return at is not None and at <= now.timestamp()

    def planner(self, now: datetime) -> Planner:
        """Return the planner, abreast of the model; nothing is decided."""
        catalog = self._catalogs.current()
        if self._planner is None or self._planner.catalog is not catalog:
            fleet = whole_fleet(self._model, catalog, self._settings, now)
            self._planner = planner_of(fleet)
            self._planner.use(self._model.usage)
            self._workloads.clear()
            self._machines.clear()
            self._holders.clear()
            self._model.stirred.clear()
            for record in self._model.waiting():
                self._note_fresh(record)
        planner = self._planner
        planner.look(now.timestamp())
        planner.recover(recovering=is_recovering(self._model, self._settings, now))
        machines = self._machines | self._model.stirred
        concerned = machines | {machine for machine, _ in self._holders}
        # What two machines have is given through one: each hears of the other.
        machines |= same_devices.follow(self._model, concerned)
        workloads, self._workloads, self._machines = self._workloads, set(), set()
        holders, self._holders = self._holders, set()
        self._model.stirred.clear()
        for name in sorted(machines):
            self._follow_machine(planner, name)
        for machine, name in sorted(holders):
            if machine not in machines:
                self._follow_holder(planner, machine, name)
        for name in sorted(workloads):
            self._follow_workload(planner, name)
        planner.follow_structure()
        return planner

    def ranking(self) -> Ranking | None:
        """Return how the line stands; None: nothing was decided yet."""
        return None if self._planner is None else self._planner.line.ranking()

    def line_moved(self, watched: Iterable[str] = ()) -> None:
        """A cycle is over: everybody may have another answer; *watched* ones come first."""
        self._revision += 1
        for name in watched:
            if name in self._model.waits:
                self._watched.setdefault(name)

    def retell(self, workloads: Iterable[str]) -> None:
        """What these were to be told did not reach them."""
        self._urgent.update(dict.fromkeys(workloads))

    def is_told(self, workload: str) -> bool:
        """Whether the last word to *workload* is still the whole truth."""
        is_told = self._told.get(workload) == self._revision
        is_news = workload in self._urgent or workload in self._watched
        behind = self._workloads or self._machines or self._model.stirred
        return is_told and not is_news and not behind

    @property
    def has_untold(self) -> bool:
        """Whether somebody may have another answer now."""
        is_over = self._round_of == self._revision and not self._round
        return bool(self._urgent or self._watched) or not is_over

    def take_urgent(self, most: int) -> list[str]:
        """Return up to *most* who were never told anything, or whose promise broke."""
        return list(islice(self._taken(self._urgent), most))

    def take_untold(self, most: int) -> list[str]:
        """Return up to *most* who may have another answer now.

        Urgent ones come first, then those whom somebody watches, then all in turn.
        """
        untold = (self._urgent, self._watched)
        names = (name for group in untold for name in self._taken(group))
        return list(islice(chain(names, self._next_in_round()), most))

    def _taken(self, names: dict[str, None]) -> Iterator[str]:
        while names:
            name = next(iter(names))
            self._urgent.pop(name, None)
            self._watched.pop(name, None)
            if self._note_told(name):
                yield name

    def _next_in_round(self) -> Iterator[str]:
        if not self._round and self._round_of != self._revision:
            self._round_of = self._revision
            if self._planner is not None:
                self._round.extend(self._planner.line)
        while self._round:
            name = self._round.popleft()
            if self._told.get(name) != self._revision and self._note_told(name):
                yield name

    def _note_told(self, name: str) -> bool:
        waits = self._planner is not None and name in self._planner.waiters
        if waits:
            self._told[name] = self._revision
        else:
            self._told.pop(name, None)
        return waits

    def tidy(self, now: datetime) -> None:
        """Do what need not wait for an event, nor keep one waiting: rank the line."""
        self.planner(now).rank_if_due(now.timestamp())

    def sweep(self, now: datetime, *, most: int) -> int:
        """Look at up to *most* machines and waiting workloads whatever happened.

        Returns how many were found that an event should have brought up.  They are
        put right; the next cycle decides.
        """
        planner = self.planner(now)
        machines = list(islice(self._swept, most))
        if not machines:
            self._swept = iter(sorted(self._model.machines))
            machines = list(islice(self._swept, most))
        missed = sum(self._follow_machine(planner, name) for name in machines)
        waiting = {record.id for record in self._model.waiting()}
        for name in waiting ^ planner.waiters.keys():
            missed += self._follow_workload(planner, name)
        missed += planner.look_again(most)
        self.rescues += missed
        return missed

    def settle(
        self, record: Workload, now: datetime, written: Mapping[int, Usage]
    ) -> Usage | None:
        """Return what its user has used once *record* gives back what it holds.

        *written* is what the same decision says already.
        """
        if record.assignment is None:
            return None
        held = held_by(self._catalogs.current(), record)
        earlier = written.get(held.user_id, self._model.usage.get(held.user_id))
        planner = self._planner or self.planner(now)
        return planner.settle(earlier, held, now.timestamp())

    def _note_fresh(self, record: Workload | None) -> None:
        if record is not None and record.state is State.REQUESTED:
            self._urgent.setdefault(record.id)

    def _note_holder(self, record: Workload | None) -> None:
        if record is not None and record.assignment is not None:
            self._holders.add((record.assignment.machine, record.id))

    def _follow_holder(self, planner: Planner, machine: str, name: str) -> None:
        """Tell the planner what a workload holds of a machine by now."""
        entry = planner.fleet.entries.get(machine)
        if entry is None:
            return
        record = self._model.workloads.get(name)
        assignment = record.assignment if record is not None else None
        known = entry.allocations.get(name)
        if record is None or assignment is None or assignment.machine != machine:
            planner.release(machine, name)
        else:
            held = held_by(planner.catalog, record)
            if known is None or not known.is_same_hold(held):
                self._follow_machine(planner, machine)
            elif known != held:
                planner.retell(machine, held)

    def _follow_machine(self, planner: Planner, name: str) -> bool:
        """Tell the planner about a machine; return whether that was news."""
        record = self._model.machines.get(name)
        entry = planner.fleet.entries.get(name)
        if record is None:
            if entry is not None:
                planner.remove_machine(name)
            return entry is not None
        catalog = self._catalogs.current()
        known = {} if entry is None else entry.allocations
        state = machine_state(self._model, catalog, self._settings, record, known)
        if entry is None or not _alike(entry.machine, state):
            planner.put_machine(state)
            return True
        # Observations are no news: nobody starts or waits because of them.
        before, seen = entry.machine, _seen_as(entry.machine, state)
        if seen != before:
            entry.observe(seen)
        if (before.rested, before.idle) != (state.rested, state.idle):
            # Yet who waits is told of them.
            self.line_moved()
        held = {item.workload: item for item in state.held}
        gone = known.keys() - held.keys()
        for workload in sorted(gone):
            planner.release(name, workload)
        differs = any(known.get(key) is not item for key, item in held.items())
        if differs:
            planner.put_machine(state)
        return differs or bool(gone)

    def _follow_workload(self, planner: Planner, name: str) -> bool:
        """Tell the planner about a workload; return whether that was news."""
        record = self._model.workloads.get(name)
        waiter = planner.waiters.get(name)
        if record is None or record.state not in WAITING:
            if waiter is not None:
                planner.leave(name)
            return waiter is not None
        waiting = waiting_of(record)
        if waiter is not None and _same_request(waiter.waiting, waiting):
            return False
        if waiter is not None and waiter.waiting.priority != waiting.priority:
            planner.ask(waiting, again=Cause.MOVED)
        else:
            planner.ask(waiting)
        return True


def _is_alike(old: Workload, new: Workload) -> bool:
    """Return whether nothing changed that placement looks at: what was told, say."""
    return (
        old.state is new.state
        and old.assignment is new.assignment
        and old.ready_at is new.ready_at
        and old.choice is new.choice
        and old.principal is new.principal
        and old.rejected_by is new.rejected_by
        and old.home is new.home
        and old.moved == new.moved
        and old.origin is new.origin
    )


def _alike(old: MachineState, new: MachineState) -> bool:
    """Return whether both are the same but for what is held and what was observed."""
    if old.facts is not new.facts and old.facts != new.facts:
        return False
    known = replace(_seen_as(old, new), facts=new.facts, held=())
    return known == replace(new, held=())


def _seen_as(old: MachineState, new: MachineState) -> MachineState:
    """Return *old* with what was observed of *new*."""
    return replace(
        old,
        in_use=new.in_use,
        rested=new.rested,
        idle=new.idle,
        unused_memory_bytes=new.unused_memory_bytes,
    )


def _same_request(old: Waiting, new: Waiting) -> bool:
    """Return whether both ask for the same; what was promised since is the planner's."""
    earlier = replace(
        old, promise=new.promise, reservation=new.reservation, parked=new.parked
    )
    return earlier == new
