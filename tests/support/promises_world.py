"""The world around an engine whose promises are worked out by hand.

It overruns its limits, loses machines, moves people, ranks the line anew, hands starts
back, and restarts the engine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import hypothesis.strategies as st
from changing_fleet import USERS
from hypothesis.stateful import initialize, precondition, rule
from promises_by_hand import CATALOG, EARLIER, NAMES, FleetByHand
from scheduling_builders import BOTH_DRIVERS, OPEN, a_gpu, a_mac, a_machine, a_snapshot
from typing_extensions import override

from fleet_contracts.causes import Cause
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.decisions import Placement, Wait
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.snapshot import MachineState, Usage, Waiting
from fleet_hub.scheduling.telling import acknowledge, waits


class WorldByHand(FleetByHand):
    """What can happen to a fleet, and to those who wait for it."""

    faults: ClassVar = ("offline", "draining", "back", "back")
    most_disk_gib: ClassVar = 1000

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
            return a_mac(name, sharing=OPEN, drivers=BOTH_DRIVERS)
        gpus = 2 if kind == "gpus" else 0
        devices = tuple(a_gpu(f"{name}-{number}") for number in range(gpus))
        return a_machine(name, sharing=OPEN, drivers=BOTH_DRIVERS, devices=devices)

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
    @rule(data=st.data(), cores=st.integers(2, 10))
    def lend_cores(self, data: st.DataObject, cores: int) -> None:
        """Its owner lends more or less of it."""
        self.put_facts(data, cores_milli=cores * 1000)

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

    @override
    def put(self, state: MachineState) -> None:
        self.worse = {state.name}
        super().put(state)
        self.worse = set()

    def forget(self, workload: str) -> None:
        """It waits no more."""
        del self.line[workload]
        for known in (self.promised, self.told, self.outsets):
            known.pop(workload, None)

    def end(self, workload: str) -> None:
        """Its machine holds *workload* no more."""
        _, placement = self.running.pop(workload)
        self.give_back(placement.machine, workload)

    @override
    def decide(self) -> None:
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
        """Judge what somebody who waits is told now, beside what they were told before."""
        raise NotImplementedError

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
