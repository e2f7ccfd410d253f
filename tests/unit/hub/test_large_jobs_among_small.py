"""A stream of small jobs starves no large one, whatever else is in its favour."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from eight_gpus import (
    HOUR,
    a_box,
    a_line,
    ask,
)
from scheduling_builders import (
    ALICE,
    NOON,
    an_allocation,
)

from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.keeping import PATIENCE_SECONDS
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Usage
from fleet_hub.scheduling.telling import acknowledge, waits


@dataclass
class Stream:
    """Three small jobs every ten minutes, each for an hour; among them a large one."""

    planner: Planner
    small: str = "one"
    large: str = "all"
    small_profile: str = "lab"
    large_profile: str = "lab"
    users: int = 1
    hours: int = 24
    bound: float | None = None
    """The first time that the large one was told."""
    broken: list[Explanation] = field(default_factory=list)
    """What was told of that promise later."""
    ends: list[tuple[float, str]] = field(default_factory=list)

    def starts(self) -> float | None:
        """Return after how many seconds the large one starts; None: not within ``hours``."""
        for step in range(6 * self.hours):
            now = NOON + step * 600
            self._end(now)
            self._ask(step)
            for placement in self.planner.decide(now).placements:
                self.ends.append((now + HOUR, placement.workload))
                if placement.workload == "large":
                    return now - NOON
            if step >= 3:
                self._hear()
        return None

    def _end(self, now: float) -> None:
        for end, workload in tuple(self.ends):
            if end <= now:
                self.planner.release("gpu-box", workload)
                self.ends.remove((end, workload))

    def _ask(self, step: int) -> None:
        for number in range(3 * step, 3 * step + 3):
            user = number % self.users
            ask(
                self.planner,
                f"small-{number:04}",
                self.small,
                profile=self.small_profile,
                principal=Principal(user_id=10 + user, name=f"user-{user}"),
            )
        if step == 3:
            ask(
                self.planner,
                "large",
                self.large,
                profile=self.large_profile,
                principal=ALICE,
            )

    def _hear(self) -> None:
        (told,) = waits(self.planner, ["large"])
        acknowledge(self.planner, [told])
        self.bound = told.no_later_than if self.bound is None else self.bound
        self.broken += [] if told.broken is None else [told.broken]


@pytest.mark.parametrize(
    ("users", "usage"),
    [
        (1, {}),
        (50, {}),
        # Whoever has used most comes last by fair share: who comes first is not all.
        (50, {1: Usage(amount=1e9, as_of=NOON)}),
    ],
)
def test_eight_gpus_start_by_their_first_bound_in_a_stream_of_single_ones(
    users: int, usage: dict[int, Usage]
) -> None:
    """Of one user or of fifty, and also if the large job's user has had the most."""
    stream = Stream(a_line(usage=usage), users=users)
    started = stream.starts()
    assert started is not None
    assert stream.bound is not None
    assert NOON + started <= stream.bound
    assert stream.broken == []


def test_an_urgent_large_job_starts_by_its_first_bound_too() -> None:
    """And sooner than one that is not: it may take the place of what is promised."""
    usual, urgent = Stream(a_line()), Stream(a_line(), large_profile="urgent")
    later, sooner = usual.starts(), urgent.starts()
    assert sooner is not None
    assert later is not None
    assert sooner < later
    assert urgent.bound is not None
    assert NOON + sooner <= urgent.bound


def test_only_what_comes_before_it_makes_a_large_job_later_and_that_is_told() -> None:
    """A stream of urgent jobs takes its place, each time with the cause."""
    stream = Stream(a_line(), small_profile="urgent", hours=6)
    assert stream.starts() is None
    assert {item.reason for item in stream.broken} == {Reason.PROMISE_BROKEN}
    assert {item.subject for item in stream.broken} == {"priority"}


def test_a_small_job_that_an_admin_moves_to_the_front_breaks_no_promise_unsaid() -> (
    None
):
    """What is moved comes first; whom that makes later reads why."""
    planner = a_line(
        a_box(
            held=tuple(
                an_allocation(
                    f"held-{number}",
                    devices=(f"GPU-gpu-box-{number}",),
                    ends_by=NOON + HOUR,
                )
                for number in range(8)
            )
        )
    )
    ask(planner, "large", "all", principal=ALICE)
    planner.decide(NOON)
    (before,) = waits(planner, ["large"])
    acknowledge(planner, [before])
    ask(planner, "small", "one", asked_at=NOON + 1, priority=10)
    planner.decide(NOON + 1)
    (after,) = waits(planner, ["large"])
    assert before.no_later_than is not None
    assert after.no_later_than is not None
    assert after.no_later_than > before.no_later_than
    assert after.broken is not None
    assert [holder.workload for holder in after.broken.holders] == ["small"]


@pytest.mark.parametrize("large", ["all", "all-endless"])
@pytest.mark.parametrize("large_profile", ["lab", "urgent"])
def test_where_nobody_is_told_a_time_a_large_job_starts_all_the_same(
    large: str, large_profile: str
) -> None:
    """Small jobs without a limit: what they give back is kept for who waited longest."""
    stream = Stream(
        a_line(), small="one-endless", large=large, large_profile=large_profile
    )
    started = stream.starts()
    assert stream.bound is None
    assert started is not None
    # They last an hour, and it waits at most that and its patience.
    assert started <= 3 * 600 + HOUR + PATIENCE_SECONDS + 600
