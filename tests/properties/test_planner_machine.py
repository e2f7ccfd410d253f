"""Whatever happens to a fleet, nothing is held twice and no promise breaks unexplained.

Hypothesis plays machines, users, time and faults against the engine.  After every
decision the safety properties are checked by plain arithmetic, and every waiter is
looked at anew to see that no event was missed.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from changing_fleet import USERS, ChangingFleet
from hypothesis import settings
from hypothesis.stateful import initialize, invariant, precondition, rule
from scheduling_builders import (
    BOTH_DRIVERS,
    GIB,
    OPEN,
    a_catalog,
    a_class,
    a_gpu,
    a_gpu_class,
    a_mac,
    a_machine,
    a_metal_class,
    a_profile,
)
from typing_extensions import override

from fleet_contracts.catalog import Profile, Quota
from fleet_contracts.workloads import DriverName, Principal
from fleet_hub.scheduling.bars import bar_of
from fleet_hub.scheduling.decisions import Placement
from fleet_hub.scheduling.snapshot import MachineState, Waiting
from fleet_hub.scheduling.telling import acknowledge, waits
from fleet_hub.scheduling.turns import NOTICEABLE_SECONDS
from fleet_hub.scheduling.vectors import FIRST_TYPE


CLASSES = (
    a_class("cpu", limit_seconds=1000),
    a_class("wide", cpu_milli=6000, limit_seconds=5000),
    a_class("endless"),
    a_class("disk", disk_bytes=300 * GIB, limit_seconds=2000),
    a_gpu_class("gpu", limit_seconds=3000),
    a_gpu_class("gpus", devices=2, limit_seconds=4000),
    a_gpu_class("large-gpu", device_memory_bytes=60 * GIB, limit_seconds=1000),
    a_gpu_class("endless-gpu"),
    a_metal_class("metal", limit_seconds=2000),
)


def profile(name: str, priority: int) -> Profile:
    """Return a profile that offers every class."""
    return a_profile(
        name, classes=tuple(item.name for item in CLASSES), priority=priority
    )


CATALOG = a_catalog(
    classes=CLASSES,
    profiles=(profile("lab", 0), profile("urgent", 5)),
    quotas=(Quota(user="dee", workloads=2), Quota(group="bio", devices=3)),
)
CAUSES = frozenset(
    {
        *("priority", "quota", "offline", "draining", "less_room"),
        *("machine_removed", "foreign_process"),
    }
)
"""What may take the ground from a promise here; everything else is a fault."""

KINDS = st.sampled_from(["cpu", "gpu", "gpus", "mixed", "mac"])
REQUESTS = st.tuples(
    st.sampled_from(USERS),
    st.sampled_from([item.name for item in CLASSES]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([0, 0, 0, 3]),
    st.sampled_from([None, None, None, "m0", "m1"]),
)


def small_gpu(uuid: str) -> object:
    """Return a GPU with 40 GiB."""
    return a_gpu(uuid, name="NVIDIA A100-PCIE-40GB", memory_bytes=40 * GIB)


def machine(kind: str, name: str, owner: str) -> MachineState:
    """Return a machine of one of a few kinds."""
    if kind == "mac":
        return a_mac(name, owner=owner, sharing=OPEN, drivers=BOTH_DRIVERS)
    devices = {
        "cpu": (),
        "gpu": (a_gpu(f"{name}-0"),),
        "gpus": tuple(a_gpu(f"{name}-{number}") for number in range(3)),
        "mixed": (a_gpu(f"{name}-0"), small_gpu(f"{name}-1"), small_gpu(f"{name}-2")),
    }[kind]
    return a_machine(
        name, owner=owner, sharing=OPEN, drivers=BOTH_DRIVERS, devices=devices
    )


class FleetUnderFire(ChangingFleet):
    """A fleet, its users, its faults and its clock."""

    def __init__(self) -> None:
        """Begin with an empty fleet at noon."""
        super().__init__(CATALOG)
        self.running: dict[str, Placement] = {}
        self.broken: Counter[str] = Counter()
        self.sources: dict[str, str | None] = {}
        """Where the files are of which each begins with a copy."""
        self.fenced: set[str] = set()
        """What was started behind a fence that held."""

    # What can happen.

    @initialize(kinds=st.lists(KINDS, min_size=1, max_size=3))
    def begin(self, kinds: list[str]) -> None:
        """A fleet is there before the first request."""
        for number, kind in enumerate(kinds):
            self.put(machine(kind, f"m{number}", "alice"))

    @rule(
        kind=KINDS,
        owner=st.sampled_from(["alice", "bob"]),
        name=st.sampled_from(["m0", "m1", "m2", "m3"]),
    )
    def enrol(self, kind: str, owner: str, name: str) -> None:
        """A machine joins, unless the name is taken."""
        if name not in self.machines:
            self.put(machine(kind, name, owner))

    @rule(requests=st.lists(REQUESTS, min_size=1, max_size=8))
    def ask(self, requests: list[tuple[Principal, str, bool, int, str | None]]) -> None:
        """Some people ask for something."""
        for user, chosen, urgent, rejections, source in requests:
            self.numbers += 1
            self.sources[f"w{self.numbers:04}"] = source
            self.planner.ask(
                Waiting(
                    workload=f"w{self.numbers:04}",
                    principal=user,
                    profile="urgent" if urgent else "lab",
                    class_name=chosen,
                    asked_at=self.now,
                    rejections=rejections,
                    source=source,
                )
            )
            # What this leaves unfinished has to stand back for the next request.
            self.decide_a_little()
        self.decide()

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        """A machine confirms an end, early or late."""
        workload = data.draw(st.sampled_from(sorted(self.running)))
        self.give_back(self.running.pop(workload).machine, workload)
        self.decide()

    @precondition(lambda self: self.planner.waiters)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """Somebody leaves the line."""
        workload = data.draw(st.sampled_from(sorted(self.planner.waiters)))
        self.planner.leave(workload)
        self.promised.pop(workload, None)
        self.decide()

    @rule(seconds=st.sampled_from([1, 30, 61, 600, 3000]))
    def pass_time(self, seconds: int) -> None:
        """Time goes on, and limits are enforced on time."""
        end = self.now + seconds
        due = sorted(
            (placement.ends_by, workload)
            for workload, placement in self.running.items()
            if placement.ends_by is not None and placement.ends_by <= end
        )
        for ends_by, workload in due:
            self.now = max(self.now, ends_by)
            self.give_back(self.running.pop(workload).machine, workload)
            self.decide()
        self.run_alarms(end)
        self.now = end
        self.decide()

    @precondition(lambda self: self.machines)
    @rule(data=st.data(), fenced=st.booleans())
    def change_fence(self, data: st.DataObject, *, fenced: bool) -> None:
        """A machine's fence was seen to hold, or is in doubt again."""
        self.put_facts(data, metal_fenced=fenced)

    @precondition(lambda self: self.machines)
    @rule(data=st.data(), gib=st.sampled_from([3, 24]))
    def use_beside(self, data: st.DataObject, gib: int) -> None:
        """Programs outside the fleet use some GPUs of a machine, and no others."""
        name = data.draw(st.sampled_from(sorted(self.machines)))
        old = self.machines[name]
        known = [str(item.uuid) for item in old.facts.devices if item.uuid is not None]
        used = data.draw(st.sets(st.sampled_from(known))) if known else set()
        foreign = tuple((uuid, gib * GIB) for uuid in sorted(used))
        self.put(replace(old, foreign=foreign))

    @precondition(lambda self: self.machines)
    @rule(data=st.data())
    def repeat_news(self, data: st.DataObject) -> None:
        """A machine's state is told again; nothing changes."""
        name = data.draw(st.sampled_from(sorted(self.machines)))
        self.put(self.machines[name])

    @precondition(lambda self: self.machines)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """A machine on which nothing runs leaves the fleet."""
        name = data.draw(st.sampled_from(sorted(self.machines)))
        if not self.machines[name].held:
            del self.machines[name]
            self.planner.remove_machine(name)
            self.decide()

    # The world around the engine.

    @override
    def decide(self) -> None:
        """Let the engine decide in small goes, carry it out, and note its promises."""
        while self.decide_a_little():
            pass
        told = {wait.workload: wait for wait in waits(self.planner)}
        acknowledge(self.planner, told.values())
        for workload, wait in told.items():
            before = self.promised.pop(workload, None)
            later = before is not None and (
                wait.no_later_than is None
                or wait.no_later_than > before + NOTICEABLE_SECONDS
            )
            if later:
                assert wait.broken is not None, f"{workload} slipped without a cause"
                assert wait.broken.subject in CAUSES
                self.broken[wait.broken.subject] += 1
            if wait.no_later_than is not None:
                self.promised[workload] = wait.no_later_than
        self.told = told

    def decide_a_little(self) -> bool:
        """Let the engine take some turns; return whether it has more to do."""
        plan = self.planner.decide(self.now, most_turns=3)
        for placement in plan.placements:
            self.carry_out(placement)
        for refusal in plan.refusals:
            self.promised.pop(refusal.workload, None)
        return plan.is_unfinished

    def carry_out(self, placement: Placement) -> None:
        """The machine takes the placement."""
        entry = self.planner.fleet.entries[placement.machine]
        promise = self.promised.pop(placement.workload, None)
        if promise is not None:
            assert self.now <= promise + NOTICEABLE_SECONDS, "started later than said"
        source = self.sources[placement.workload]
        assert source is None or self.machines[source].online, "its files are away"
        old = self.machines[placement.machine]
        used = {uuid for uuid, _ in old.foreign}
        assert used.isdisjoint(placement.resources.devices), "given to two at once"
        if old.facts.os == "darwin" and old.facts.metal_fenced:
            self.fenced.add(placement.workload)
        elif old.facts.os == "darwin" and placement.resources.metal:
            # Whatever is native there may compute on the GPU.
            natives = [item for item in old.held if item.driver is DriverName.NATIVE]
            assert not natives, "started beside what is not known to be fenced"
        self.machines[placement.machine] = replace(
            old, held=(*old.held, entry.allocations[placement.workload])
        )
        self.running[placement.workload] = placement

    # What must always hold.

    @invariant()
    def nothing_is_held_twice(self) -> None:
        """Sums stay within capacity; a device and a Mac's GPU have one holder."""
        for state in self.machines.values():
            held = [item.resources for item in state.held]
            assert sum(item.cpu_milli for item in held) <= (
                state.facts.cores_milli or 0
            )
            assert sum(item.memory_bytes for item in held) <= (
                state.facts.memory_bytes or 0
            )
            devices = Counter(uuid for item in held for uuid in item.devices)
            assert all(count == 1 for count in devices.values())
            assert devices.keys() <= {item.uuid for item in state.facts.devices}
            assert sum(item.metal for item in held) <= 1
            for item in state.held:
                native = item.driver is DriverName.NATIVE
                assert not native or item.owner == state.owner
                if native and state.facts.os == "darwin":
                    assert item.resources.metal or item.workload in self.fenced

    @invariant()
    def the_engine_counts_as_the_world_does(self) -> None:
        """What the engine thinks is held is what is held."""
        for name, state in self.machines.items():
            entry = self.planner.fleet.entries[name]
            assert entry.allocations == {item.workload: item for item in state.held}
            assert entry.free[0] == (state.facts.cores_milli or 0) - sum(
                item.resources.cpu_milli for item in state.held
            )
            assert entry.free[1] == (state.facts.memory_bytes or 0) - sum(
                item.resources.memory_bytes for item in state.held
            )
            held = {uuid for item in state.held for uuid in item.resources.devices}
            taken = held | {uuid for uuid, _ in state.foreign}
            known = {item.uuid for item in state.facts.devices} - {None}
            assert sum(entry.free[FIRST_TYPE:]) == len(known - taken)

    @invariant()
    def no_waiter_is_forgotten(self) -> None:
        """A look at everybody finds nothing that the events did not bring up."""
        for waiter in self.planner.waiters.values():
            assert waiter.workload in self.told
            if bar_of(self.planner.fleet, self.planner.quotas, waiter) is not None:
                assert waiter.found is None
                continue
            interest = waiter.interest
            for name in self.machines:
                here = self.planner.fleet.on_machine(
                    interest, name, self.now, without=(waiter.workload,)
                )
                if here is not None:
                    assert here.start > self.now, "the sweep found a placement"
                    assert here.start >= waiter.start - NOTICEABLE_SECONDS

    @invariant()
    def every_machine_is_accounted_for(self) -> None:
        """The counts of the survey are those of a question to each machine."""
        for wait in self.told.values():
            waiter = self.planner.waiters[wait.workload]
            if self.machines:
                assert sum(wait.counts.values()) == len(self.machines)
            assert waiter.promise == wait.no_later_than


# So many steps take minutes on a busy machine.
pytestmark = pytest.mark.timeout(7200)

STEPS = int(os.environ.get("FLEET_PROPERTY_STEPS", "5000"))
FleetUnderFire.TestCase.settings = settings(
    max_examples=max(1, STEPS // 50), stateful_step_count=50, deadline=None
)
test_fleet_under_fire = FleetUnderFire.TestCase
