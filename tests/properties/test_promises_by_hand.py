"""Every promise, worked out again by hand: no bound is luckier than the world allows.

The model here knows nothing of the engine's pools, horizons and profiles.  It adds up
what is held and promised on each machine at each moment, and looks at every machine and
every moment for a sooner start.
"""

from __future__ import annotations

import math
import os

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant
from promises_by_hand import BY_NAME, EARLIER, NEWS_SECONDS, PRIORITIES, hold_seconds
from promises_world import WorldByHand
from typing_extensions import override

from fleet_contracts.causes import Cause
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.scheduling.decisions import Wait
from fleet_hub.scheduling.likely import outset_of
from fleet_hub.scheduling.snapshot import Waiting


class PromisesByHand(WorldByHand):
    """An engine that is held to each promise."""

    @override
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
            higher = {Cause.PRIORITY, Cause.PUT_FIRST}
            assert cause in {Reason.OFFLINE, Cause.HOLDER_OVERDUE, *higher}, cause
        if self.is_recovering and cause in {Cause.PRIORITY, Cause.PUT_FIRST}:
            (by,) = broken.holders
            kept = self.kept_before.get(by.workload)
            assert kept is None or kept.machine in self.back, "its own may come back"

    def priority(self, waiting: Waiting) -> int:
        """Return how far before others somebody comes."""
        return waiting.priority or PRIORITIES[waiting.profile]

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
