"""Machines that fall silent, are drained and fill their disks, before an engine.

What state machines play against the engine has these in common; what they hold it to
is their own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from scheduling_builders import GIB, NOON

from fleet_contracts.catalog import Catalog
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.decisions import Wait
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import MachineState


USERS = tuple(
    Principal(user_id=number, name=name, groups=groups)
    for number, (name, groups) in enumerate(
        [("alice", ()), ("bob", ("bio",)), ("cy", ("bio",)), ("dee", ())], 1
    )
)


class ChangingFleet(RuleBasedStateMachine):
    """An engine, its machines and its clock; nobody asks for anything yet."""

    faults: ClassVar = ("offline", "draining", "back")
    most_disk_gib: ClassVar = 600

    def __init__(self, catalog: Catalog) -> None:
        """Begin with an empty fleet at noon."""
        super().__init__()
        self.now = NOON
        self.planner = Planner(catalog, now=NOON)
        self.machines: dict[str, MachineState] = {}
        self.promised: dict[str, float] = {}
        self.told: dict[str, Wait] = {}
        self.numbers = 0

    def decide(self) -> None:
        """Let the engine decide, carry it out, and hold it to its word."""
        raise NotImplementedError

    # What can happen.

    @precondition(lambda self: self.machines)
    @rule(data=st.data())
    def disturb(self, data: st.DataObject) -> None:
        """A machine falls silent, is drained, or comes back."""
        name = data.draw(st.sampled_from(sorted(self.machines)))
        fault = data.draw(st.sampled_from(self.faults))
        self.put(
            replace(
                self.machines[name],
                online=fault != "offline",
                draining_by="alice" if fault == "draining" else None,
            )
        )

    @precondition(lambda self: self.machines)
    @rule(data=st.data())
    def change_disk(self, data: st.DataObject) -> None:
        """The free disk of a machine is another now."""
        gib = data.draw(st.integers(0, self.most_disk_gib))
        self.put_facts(data, disk_free_bytes=gib * GIB)

    # The world around the engine.

    def put(self, state: MachineState) -> None:
        """Tell the engine about a machine."""
        self.machines[state.name] = state
        self.planner.put_machine(state)
        self.decide()

    def put_facts(self, data: st.DataObject, **facts: object) -> None:
        """Tell the engine that some machine has other *facts* now."""
        name = data.draw(st.sampled_from(sorted(self.machines)))
        old = self.machines[name]
        self.put(replace(old, facts=old.facts.model_copy(update=facts)))

    def give_back(self, name: str, workload: str) -> None:
        """A machine holds *workload* no more, and says so."""
        old = self.machines[name]
        held = tuple(item for item in old.held if item.workload != workload)
        self.machines[name] = replace(old, held=held)
        self.planner.release(name, workload)

    def run_alarms(self, end: float) -> None:
        """Decide at each time at which the engine asked to be called."""
        for _ in range(1000):
            at = self.planner.decide(self.now).look_again_at
            if at is None or at > end:
                return
            self.now = max(self.now, at)
            self.decide()
        raise AssertionError("the engine asks to be called for ever")
