"""Every promise, worked out again by hand: no bound is luckier than the world allows.

The model here knows nothing of the engine's pools, horizons and profiles.  It adds up
what is held and promised on each machine at each moment, and looks at every machine and
every moment for a sooner start.  The world around it overruns its limits, loses
machines, moves people, ranks the line anew, hands starts back, and restarts the engine.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
)
from promises_by_hand import (
    BOTH,
    BY_NAME,
    CATALOG,
    EARLIER,
    NAMES,
    NEWS_SECONDS,
    PRIORITIES,
    USERS,
    FleetByHand,
    hold_seconds,
)
from scheduling_builders import (
    GIB,
    OPEN,
    a_gpu,
    a_mac,
    a_machine,
    a_snapshot,
)

from fleet_contracts.causes import Cause
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.decisions import Placement, Wait
from fleet_hub.scheduling.likely import outset_of
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.snapshot import MachineState, Usage, Waiting
from fleet_hub.scheduling.telling import acknowledge, waits


class PromisesByHand(FleetByHand):
    """A fleet that keeps no promise of itself."""

    # ------------------------------------------------------------ what can happen

    @initialize(
        kinds=st.lists(st.sampled_from(["cpu", "gpus", "mac"]), min_size=1, max_size=3)
    )
    def begin(self, kinds: list[str]) -> None:
        """A fleet is there before the first request."""
        for number, kind in enumerate(kinds):
            self.put(self.a_machine(kind, f"m{number}"))

    def a_machine(self, kind: str, name: str) -> MachineState:
        """Return everybody's machine."""
        if kind == "mac":
            return a_mac(name, sharing=OPEN, drivers=BOTH)
        gpus = 2 if kind == "gpus" else 0
        devices = tuple(a_gpu(f"{name}-{number}") for number in range(gpus))
        return a_machine(name, sharing=OPEN, drivers=BOTH, devices=devices)

    @rule(
        asked=st.lists(
            st.tuples(
                st.sampled_from(USERS),
                st.sampled_from(NAMES),
                st.sampled_from(["lab", "lab", "lab", "urgent"]),
            ),
            min_size=1,
            max_size=5,
        )
    )
    def ask(self, asked: list[tuple[Principal, str, str]]) -> None:
        """Some people ask for something."""
        for user, chosen, profile in asked:
            self.numbers += 1
            waiting = Waiting(
                workload=f"w{self.numbers:04}",
                principal=user,
                profile=profile,
                class_name=chosen,
                asked_at=self.now,
            )
            self.line[waiting.workload] = waiting
            self.planner.ask(waiting)
        self.decide()

    @precondition(lambda self: self.line)
    @rule(data=st.data(), place=st.sampled_from(["first", "usual", "last"]))
    def move(self, data: st.DataObject, place: str) -> None:
        """An admin gives somebody another place."""
        workload = data.draw(st.sampled_from(sorted(self.line)))
        self.moves += 1
        priority = {"first": 1000 + self.moves, "usual": 0, "last": -1000 - self.moves}
        again = replace(self.line[workload], priority=priority[place])
        self.line[workload] = again
        self.planner.ask(again, again=Cause.MOVED)
        self.decide()

    @precondition(lambda self: self.line)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """Somebody leaves the line."""
        workload = data.draw(st.sampled_from(sorted(self.line)))
        self.forget(workload)
        self.planner.leave(workload)
        self.decide()

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end_early(self, data: st.DataObject) -> None:
        """A machine confirms an end."""
        self.end(data.draw(st.sampled_from(sorted(self.running))))
        self.decide()

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def hand_back(self, data: st.DataObject) -> None:
        """An agent says no to what was placed there; its place is kept."""
        workload = data.draw(st.sampled_from(sorted(self.running)))
        waiting, placement = self.running[workload]
        self.end(workload)
        known = {**waiting.rejected_by, placement.machine: Reason.AGENT_REJECTED}
        again = replace(
            waiting,
            rejected_by=known,
            rejections=waiting.rejections + 1,
            promise=None,
            reservation=None,
        )
        self.line[workload] = again
        self.planner.ask(again)
        self.decide()

    @rule(seconds=st.sampled_from([1, 61, 600, 3000, 9000]), overrun=st.booleans())
    def pass_time(self, seconds: int, *, overrun: bool) -> None:
        """Time goes on; limits are enforced, or their machines are late."""
        until = self.now + seconds
        due = sorted(
            (placement.ends_by, workload)
            for workload, (_, placement) in self.running.items()
            if placement.ends_by is not None and placement.ends_by <= until
        )
        for ends_by, workload in () if overrun else due:
            self.run_alarms(ends_by)
            self.now = max(self.now, ends_by)
            self.end(workload)
            self.decide()
        self.run_alarms(until)
        self.now = until
        self.decide()

    @precondition(lambda self: self.machines)
    @rule(
        data=st.data(), fault=st.sampled_from(["offline", "draining", "back", "back"])
    )
    def disturb(self, data: st.DataObject, fault: str) -> None:
        """A machine falls silent, is drained, or comes back."""
        name = data.draw(st.sampled_from(sorted(self.machines)))
        self.put(
            replace(
                self.machines[name],
                online=fault != "offline",
                draining_by="alice" if fault == "draining" else None,
            )
        )

    @precondition(lambda self: self.machines)
    @rule(data=st.data(), gib=st.integers(0, 1000))
    def change_disk(self, data: st.DataObject, gib: int) -> None:
        """The free disk of a machine is another now."""
        name = data.draw(st.sampled_from(sorted(self.machines)))
        old = self.machines[name]
        facts = old.facts.model_copy(update={"disk_free_bytes": gib * GIB})
        self.put(replace(old, facts=facts))

    @precondition(lambda self: self.machines)
    @rule(data=st.data(), cores=st.integers(2, 10))
    def lend_cores(self, data: st.DataObject, cores: int) -> None:
        """Its owner lends more or less of it."""
        name = data.draw(st.sampled_from(sorted(self.machines)))
        old = self.machines[name]
        facts = old.facts.model_copy(update={"cores_milli": cores * 1000})
        self.put(replace(old, facts=facts))

    @precondition(lambda self: self.machines)
    @rule(data=st.data())
    def lose_a_device(self, data: st.DataObject) -> None:
        """A GPU falls off its bus, or is back."""
        name = data.draw(st.sampled_from(sorted(self.machines)))
        old = self.machines[name]
        if not old.facts.devices:
            return
        first, *others = old.facts.devices
        other = first.model_copy(
            update={"usable": not first.usable, "healthy": not first.usable}
        )
        facts = old.facts.model_copy(update={"devices": (other, *others)})
        self.put(replace(old, facts=facts))

    @rule(amounts=st.lists(st.floats(0, 1e6), min_size=4, max_size=4))
    def use_more(self, amounts: list[float]) -> None:
        """What users have had is another: the line ranks itself anew in its time."""
        self.usage.update(
            {
                user.user_id: Usage(amount=amount, as_of=self.now)
                for user, amount in zip(USERS, amounts, strict=True)
            }
        )

    @rule(returns=st.sampled_from(["all", "all", "late", "one away"]))
    def restart(self, returns: str) -> None:
        """The engine is built anew from what is durable; machines return, or do not."""
        for workload, wait in self.told.items():
            self.line[workload] = replace(
                self.line[workload],
                promise=wait.no_later_than,
                reservation=wait.reservation,
            )
        there = dict(self.machines)
        away = (
            {
                name: replace(
                    old, online=False, inventory_known=False, expected_back=True
                )
                for name, old in there.items()
            }
            if returns != "all"
            else there
        )
        self.planner = planner_of(
            a_snapshot(
                now=self.now,
                catalog=CATALOG,
                machines=tuple(away.values()),
                waiting=tuple(self.line.values()),
                recovering=returns != "all",
            )
        )
        self.planner.use(self.usage)
        self.is_restarting, self.is_recovering = True, returns != "all"
        self.machines = away
        self.decide()
        if self.is_recovering:
            self.come_back(there, gone=min(there) if returns == "one away" else None)
        self.is_restarting = False

    def come_back(self, there: dict[str, MachineState], *, gone: str | None) -> None:
        """The machines dial again after a restart, all but one perhaps."""
        for name, old in there.items():
            self.machines[name] = replace(old, online=old.online and name != gone)
            self.planner.put_machine(self.machines[name])
            self.decide()
        self.now += 30
        self.is_recovering = False
        self.planner.recover(recovering=False)
        self.decide()

    # -------------------------------------------------------------- the world

    def put(self, state: MachineState) -> None:
        """Tell the engine about a machine."""
        self.machines[state.name] = state
        self.planner.put_machine(state)
        self.worse = {state.name}
        self.decide()
        self.worse = set()

    def forget(self, workload: str) -> None:
        """It waits no more."""
        del self.line[workload]
        for known in (self.promised, self.told, self.outsets):
            known.pop(workload, None)

    def end(self, workload: str) -> None:
        """Its machine holds *workload* no more."""
        _, placement = self.running.pop(workload)
        old = self.machines[placement.machine]
        held = tuple(item for item in old.held if item.workload != workload)
        self.machines[placement.machine] = replace(old, held=held)
        self.planner.release(placement.machine, workload)

    def run_alarms(self, end: float) -> None:
        """Decide at each time at which the engine asked to be called."""
        for _ in range(1000):
            at = self.planner.decide(self.now).look_again_at
            if at is None or at > end:
                return
            self.now = max(self.now, at)
            self.decide()
        raise AssertionError("the engine asks to be called for ever")

    def decide(self) -> None:
        """Let the engine decide in small goes, carry it out, and hold it to its word."""
        while True:
            plan = self.planner.decide(self.now, most_turns=2)
            for placement in plan.placements:
                self.carry_out(placement)
            for refusal in plan.refusals:
                self.forget(refusal.workload)
            if not plan.is_unfinished:
                break
        told = {wait.workload: wait for wait in waits(self.planner)}
        acknowledge(self.planner, told.values())
        assert told.keys() == self.line.keys()
        for workload, wait in told.items():
            self.hold_to_its_word(workload, wait)
        self.told = told

    def hold_to_its_word(self, workload: str, wait: Wait) -> None:
        """A time moves later only with a cause that is so."""
        before, now = self.promised.pop(workload, None), wait.no_later_than
        is_later = before is not None and (now is None or now > before + EARLIER)
        assert is_later == (wait.broken is not None), (
            workload,
            before,
            now,
            wait.broken,
        )
        if wait.broken is not None:
            self.check_cause(workload, wait.broken)
        if now is not None:
            self.promised[workload] = now
        self.outsets[workload] = outset_of(
            self.outsets.get(workload), now=self.now, bound=now, is_anew=is_later
        )

    def check_cause(self, workload: str, broken: Explanation) -> None:
        """What is said to have taken the ground from a promise did happen."""
        cause, machine = broken.subject, self.machines.get(broken.machine or "")
        waiting = self.line[workload]
        if cause in {Cause.PRIORITY, Cause.PUT_FIRST}:
            (by,) = broken.holders
            known = self.line.get(by.workload) or self.running[by.workload][0]
            assert self.priority(known) > self.priority(waiting)
            assert (cause == Cause.PUT_FIRST) == (known.priority > 0)
            assert by.owner == known.principal.name
        elif cause == Cause.MOVED:
            assert waiting.priority <= 0 or self.moves
        elif cause == Cause.QUOTA:
            assert waiting.principal.name != "alice", "nothing limits her"
        elif cause == Reason.OFFLINE:
            assert machine is not None
            assert not machine.online
        elif cause == Reason.DRAINING:
            assert machine is not None
            assert machine.draining_by
        elif cause == Cause.HOLDER_OVERDUE:
            assert machine is not None
            late = [
                item
                for item in machine.held
                if item.ends_by is not None and item.ends_by + NEWS_SECONDS <= self.now
            ]
            assert late
        else:
            assert cause in {Cause.LESS_ROOM, *Reason}, cause
        if cause == Cause.LESS_ROOM:
            assert broken.machine in self.worse, "nobody's ground was taken"
        if self.is_restarting:
            # Whoever matters more may take a lower promise while their own machine is not
            # back yet: their right at any time.
            higher = {Cause.PRIORITY, Cause.PUT_FIRST}
            assert cause in {Reason.OFFLINE, Cause.HOLDER_OVERDUE, *higher}, cause

    def priority(self, waiting: Waiting) -> int:
        """Return how far before others somebody comes."""
        return waiting.priority or PRIORITIES[waiting.profile]

    def carry_out(self, placement: Placement) -> None:
        """The machine takes the placement."""
        waiting = self.line[placement.workload]
        promise = self.promised.get(placement.workload)
        if promise is not None:
            assert self.now <= promise + EARLIER, "started later than said"
        self.forget(placement.workload)
        held = self.planner.fleet.entries[placement.machine].allocations
        old = self.machines[placement.machine]
        self.machines[placement.machine] = replace(
            old, held=(*old.held, held[placement.workload])
        )
        self.running[placement.workload] = waiting, placement

    @invariant()
    def all_promises_can_be_kept_at_once(self) -> None:
        """Moment by moment nobody's place is promised twice."""
        for state in self.machines.values():
            if not self.takes_work(state):
                continue
            for workload, wait in self.told.items():
                kept = wait.reservation
                if kept is None or kept.machine != state.name:
                    continue
                waiting = self.line[workload]
                need = self.need(state, waiting, kept.driver)
                assert need is not None
                taken = list(self.taken(state, without=workload))
                end = kept.start + hold_seconds(BY_NAME[waiting.class_name or ""])
                start = max(kept.start, self.now)
                assert self.fits(state, taken, need, start, end), (workload, kept)

    @invariant()
    def a_promise_is_the_first_moment_that_is_free(self) -> None:
        """Nobody is told a later time than need be, nor none where there is one."""
        if self.is_recovering:
            return
        for workload, wait in self.told.items():
            waiter = self.planner.waiters[workload]
            if waiter.bar is not None:
                assert wait.reservation is None
                continue
            found = self.soonest(workload)
            assert found > self.now, f"{workload} could start now"
            start = math.inf if wait.reservation is None else wait.reservation.start
            assert start <= found + EARLIER, (workload, start, found)
            assert wait.no_later_than is None or wait.no_later_than <= start
            assert (wait.no_later_than is None) == (start == math.inf)

    @invariant()
    def no_quota_is_exceeded(self) -> None:
        """By what is held; and nobody is kept from a place by a quota that has room."""
        held = [
            (waiting.principal, BY_NAME[waiting.class_name or ""].devices)
            for waiting, _ in self.running.values()
        ]
        deeds = sum(user.name == "dee" for user, _ in held)
        bio = sum(devices for user, devices in held if "bio" in user.groups)
        assert deeds <= 2
        assert bio <= 3

    @invariant()
    def who_comes_first_of_equals_starts_first(self) -> None:
        """Of those who want the same, and may go to the same, the places are in order."""
        by_kind: dict[object, list[tuple[int, float]]] = {}
        for workload in self.planner.line:
            wait, waiting = self.told[workload], self.line[workload]
            kind = (
                waiting.class_name,
                waiting.principal.name == "alice",
                tuple(waiting.rejected_by),
            )
            by_kind.setdefault(kind, []).append(
                (wait.position, wait.no_later_than or math.inf)
            )
        for told in by_kind.values():
            assert told == sorted(told, key=lambda one: one[0]), (
                "positions follow the line"
            )

    @invariant()
    def what_is_likely_is_neither_past_nor_later_than_the_bound(self) -> None:
        """And nothing is likely where nothing is promised."""
        for workload, wait in self.told.items():
            outset, bound = self.outsets.get(workload), wait.no_later_than
            assert (outset is None) == (bound is None)
            if outset is None or bound is None:
                continue
            chosen = self.line[workload].class_name or ""
            said = self.history.likely(chosen, outset, now=self.now, bound=bound)
            if said is not None:
                assert self.now <= said.early + 1e-6, (self.now, said, outset)
                assert said.early <= said.late <= bound


pytestmark = pytest.mark.timeout(7200)
STEPS = int(os.environ.get("FLEET_PROPERTY_STEPS", "3000"))
PromisesByHand.TestCase.settings = settings(
    max_examples=max(1, STEPS // 50), stateful_step_count=50, deadline=None
)
test_promises_by_hand = PromisesByHand.TestCase
