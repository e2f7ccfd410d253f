"""What is told about a workload that waits: why, who, how many before it, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_hub.scheduling.decisions import Wait
from fleet_hub.scheduling.fleet import Interest
from fleet_hub.scheduling.holders import MOST
from fleet_hub.scheduling.nearness import nearness
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Reservation
from fleet_hub.scheduling.survey import Survey, answer_of, survey
from fleet_hub.scheduling.waiter import Waiter


def waits(planner: Planner, workloads: Iterable[str] | None = None) -> Iterator[Wait]:
    """Yield what is told to each of *workloads*, or to everybody in the line."""
    wanted = None if workloads is None else set(workloads)
    for waiter, position in _positions(planner):
        if wanted is None or waiter.workload in wanted:
            yield wait_of(planner, waiter, position)


def wait_of(planner: Planner, waiter: Waiter, position: int) -> Wait:
    """Return what is told to *waiter*, who has *position* others before it."""
    interest = waiter.interest
    counted = survey(planner.fleet, interest, waiter)
    rejections = tuple(
        _told(planner, interest, waiter, name) for name in counted.examples()
    )
    headline = _headline(planner, interest, waiter, counted)
    found, waiter_broken = waiter.found, waiter.broken
    waiter.broken = None
    return Wait(
        workload=waiter.workload,
        explanation=headline.model_copy(update={"position": position}),
        position=position,
        counts=dict(counted.counts.most_common()),
        rejections=rejections,
        no_later_than=waiter.promise,
        reservation=None
        if found is None
        else Reservation(
            machine=found.machine, driver=found.need.driver, start=found.start
        ),
        broken=waiter_broken,
    )


def position_of(planner: Planner, waiter: Waiter) -> int:
    """Return how many before *waiter* want the same machines."""
    return next(place for other, place in _positions(planner) if other is waiter)


def every_answer(planner: Planner, waiter: Waiter) -> Iterator[Explanation]:
    """Yield what each machine says, by name."""
    interest = waiter.interest
    for name in sorted(planner.fleet.entries):
        yield _told(planner, interest, waiter, name)


def _headline(
    planner: Planner, interest: Interest, waiter: Waiter, counted: Survey
) -> Explanation:
    """Return the quota, or the nearest miss: where it is promised a place, if equal."""
    if waiter.quota is not None:
        return waiter.quota
    if not counted.names:
        return Explanation(reason=Reason.NO_MACHINES)
    reason = max(counted.names, key=nearness)
    if waiter.found is not None:
        promised = _told(planner, interest, waiter, waiter.found.machine)
        if promised.reason is reason:
            return promised
    return _told(planner, interest, waiter, counted.names[reason][0])


def _told(
    planner: Planner, interest: Interest, waiter: Waiter, name: str
) -> Explanation:
    """Return one machine's answer; room that is promised to others is "behind"."""
    asker = waiter.asker(names_visible=planner.fleet.context.names_visible)
    answer = answer_of(planner.fleet, interest, asker, name)
    if answer is not None:
        return answer
    others = sorted(planner.promises.on_machine(name) - {waiter.workload})
    return Explanation(
        reason=Reason.BEHIND,
        machine=name,
        requested=len(others),
        unit="workloads",
        holders=tuple(_promised(planner, waiter, other) for other in others[:MOST]),
    )


def _promised(planner: Planner, viewer: Waiter, workload: str) -> Holder:
    """Return who is promised the room, as far as the viewer may know."""
    owner = planner.waiters[workload].waiting.principal.name
    visible = planner.fleet.context.names_visible
    is_named = visible or owner == viewer.waiting.principal.name
    return Holder(workload=workload, owner=owner if is_named else None)


@dataclass(slots=True, eq=False)
class _Ahead:
    """How many of one kind of asker have passed, and which groups they could use."""

    groups: frozenset[str]
    count: int = 0


def _positions(planner: Planner) -> Iterator[tuple[Waiter, int]]:
    """Yield everybody in line order, with how many before them want the same machines.

    Who waits for a quota stands in nobody's way.
    """
    ahead: dict[Interest, _Ahead] = {}
    for workload in planner.line:
        waiter = planner.waiters[workload]
        interest = waiter.interest
        mine = ahead.get(interest)
        if mine is None:
            mine = ahead[interest] = _Ahead(groups=_usable(interest))
        position = sum(
            other.count
            for other in ahead.values()
            if not mine.groups.isdisjoint(other.groups)
        )
        yield waiter, position
        if waiter.quota is None:
            mine.count += 1


def _usable(interest: Interest) -> frozenset[str]:
    return frozenset(
        part.group.signature.key for part in interest.parts if part.outlook.needs
    )
