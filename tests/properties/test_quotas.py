"""Quotas of users and groups, whatever is asked, given back, moved and promised.

After each event nobody is kept by a quota that has room, nobody is promised what a
quota forbids, and the sweep finds nothing that no event brought up.
"""

from __future__ import annotations

import os
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)
from scheduling_builders import (
    NOON,
    OPEN,
    a_catalog,
    a_class,
    a_gpu_box,
    a_gpu_class,
    a_machine,
    a_profile,
)

from fleet_contracts.catalog import Quota
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName, Principal
from fleet_hub.scheduling.bars import bar_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Waiting


BOTH = {DriverName.NATIVE: True, DriverName.SIMULATION: True}
USERS = tuple(
    Principal(user_id=number, name=name, groups=groups)
    for number, (name, groups) in enumerate(
        [("alice", ("x",)), ("bob", ("x", "y")), ("cy", ("y",)), ("dee", ())], 1
    )
)
CLASSES = (
    a_class("small", limit_seconds=1000),
    a_class("mid", cpu_milli=3000, limit_seconds=3000),
    a_class("endless", cpu_milli=2000),
    a_gpu_class("gpu", limit_seconds=2000),
)
NAMES = tuple(item.name for item in CLASSES)
PROFILES = tuple(
    a_profile(name, classes=NAMES, priority=priority)
    for name, priority in (("lab", 0), ("urgent", 3))
)
WHO = [{"user": "*"}, {"user": "bob"}, {"group": "x"}, {"group": "*"}]
HOW_MUCH = [
    *({"workloads": most} for most in (1, 2, 4)),
    *({"cpu_milli": most} for most in (3000, 6000)),
    *({"devices": most} for most in (1, 2)),
]


class Quotas(RuleBasedStateMachine):
    """Two machines, four people, and whatever an admin allows them."""

    @initialize(
        quotas=st.lists(
            st.tuples(st.sampled_from(WHO), st.sampled_from(HOW_MUCH)),
            min_size=1,
            max_size=3,
        )
    )
    def begin(self, quotas: list[tuple[dict[str, str], dict[str, int]]]) -> None:
        """Nobody asks for anything yet."""
        limits = [Quota.model_validate(who | most) for who, most in quotas]
        catalog = a_catalog(classes=CLASSES, profiles=PROFILES, quotas=tuple(limits))
        self.now = NOON
        self.numbers = 0
        self.running: dict[str, str] = {}
        self.planner = Planner(catalog, now=NOON)
        self.planner.use({})
        for box in (
            a_machine("box", sharing=OPEN, drivers=BOTH),
            a_gpu_box(sharing=OPEN, drivers=BOTH),
            a_machine("home", cores_milli=1000),
        ):
            self.planner.put_machine(box)

    @rule(
        who=st.sampled_from(USERS),
        classes=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3),
        profile=st.sampled_from(["lab", "lab", "urgent"]),
        source=st.sampled_from([None, None, "home"]),
        most=st.sampled_from([None, 1, 3]),
    )
    def ask(
        self,
        who: Principal,
        classes: list[str],
        profile: str,
        source: str | None,
        most: int | None,
    ) -> None:
        """Somebody asks for something."""
        for chosen in classes:
            self.numbers += 1
            self.planner.ask(
                Waiting(
                    workload=f"w{self.numbers:03}",
                    principal=who,
                    profile=profile,
                    class_name=chosen,
                    asked_at=self.now,
                    source=source,
                )
            )
        self.decide(most)

    @rule(online=st.booleans(), expected_back=st.booleans())
    def know_of_home(self, *, online: bool, expected_back: bool) -> None:
        """The machine with the files of some falls silent, or comes back."""
        away = {"online": online, "expected_back": expected_back and not online}
        self.planner.put_machine(a_machine("home", cores_milli=1000, **away))
        self.decide(None)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), most=st.sampled_from([None, 1, 3]))
    def end(self, data: st.DataObject, most: int | None) -> None:
        """Something ends."""
        workload = data.draw(st.sampled_from(sorted(self.running)))
        self.planner.release(self.running.pop(workload), workload)
        self.decide(most)

    @precondition(lambda self: self.planner.waiters)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """Somebody leaves the line."""
        self.planner.leave(data.draw(st.sampled_from(sorted(self.planner.waiters))))
        self.decide(None)

    @precondition(lambda self: self.planner.waiters)
    @rule(
        data=st.data(),
        priority=st.sampled_from([0, 7, -7]),
        groups=st.sampled_from([None, (), ("x",), ("x", "y")]),
    )
    def change(
        self, data: st.DataObject, priority: int, groups: tuple[str, ...] | None
    ) -> None:
        """An admin moves somebody, or a person's groups are others now."""
        name = data.draw(st.sampled_from(sorted(self.planner.waiters)))
        waiting = self.planner.waiters[name].waiting
        who = waiting.principal
        if groups is not None:
            who = who.model_copy(update={"groups": groups})
        self.planner.ask(replace(waiting, principal=who, priority=priority))
        self.decide(None)

    @rule(seconds=st.sampled_from([1, 61, 600, 1500]), most=st.sampled_from([None, 1]))
    def pass_time(self, seconds: int, most: int | None) -> None:
        """Time goes on, and the line is ranked anew."""
        self.now += seconds
        self.decide(most)

    def decide(self, most: int | None) -> None:
        """Let everything be decided, and look at what that left."""
        while True:
            plan = self.planner.decide(self.now, most_turns=most)
            self.running |= {one.workload: one.machine for one in plan.placements}
            if not plan.is_unfinished:
                break
        for name, waiter in self.planner.waiters.items():
            bar = bar_of(self.planner.fleet, self.planner.quotas, waiter)
            assert bar is not None or waiter.bar is None, f"{name} could have a place"
            is_away = bar is not None and bar.reason is Reason.COPY_SOURCE_AWAY
            assert bar is None or is_away or waiter.found is None, (
                f"{name} may have no place"
            )
        assert self.planner.look_again(len(self.planner.waiters)) == 0


pytestmark = pytest.mark.timeout(7200)
STEPS = int(os.environ.get("FLEET_PROPERTY_STEPS", "3000"))
Quotas.TestCase.settings = settings(
    max_examples=max(1, STEPS // 50), stateful_step_count=50, deadline=None
)
test_quotas = Quotas.TestCase
