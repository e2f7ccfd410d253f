"""What is told about a workload that waits: why, who, how many before it, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_hub.scheduling.decisions import Wait
from fleet_hub.scheduling.holders import MOST
from fleet_hub.scheduling.interests import Interest
from fleet_hub.scheduling.nearness import nearness
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.positions import positions
from fleet_hub.scheduling.survey import Survey, answer_of, survey
from fleet_hub.scheduling.waiter import Waiter


def waits(
    planner: Planner,
    workloads: Iterable[str] | None = None,
    *,
    examples: bool = True,
) -> Iterator[Wait]:
    """Yield what is told to each of *workloads*, or to everybody in the line.

    Without *examples* the nearest machines are counted and not asked one by one.
    """
    known: dict[Interest, Survey] = {}
    wanted = None if workloads is None else set(workloads)
    for waiter, position in positions(planner, wanted):
        yield wait_of(planner, waiter, position, examples=examples, known=known)


def wait_of(
    planner: Planner,
    waiter: Waiter,
    position: int,
    *,
    examples: bool = True,
    known: dict[Interest, Survey] | None = None,
) -> Wait:
    """Return what is told to *waiter*, who has *position* others before it.

    *known* are surveys of the same moment.
    """
    counted = _survey(planner, waiter, {} if known is None else known)
    interest = waiter.interest
    names = counted.examples() if examples else []
    headline = _headline(planner, interest, waiter, counted)
    broken = waiter.kept_from
    waiter.tell()
    return Wait(
        workload=waiter.workload,
        explanation=headline.model_copy(update={"position": position}),
        position=position,
        counts=dict(counted.counts.most_common()),
        rejections=tuple(told(planner, interest, waiter, name) for name in names),
        no_later_than=waiter.promise,
        reservation=waiter.reservation,
        broken=broken,
    )


def _survey(planner: Planner, waiter: Waiter, known: dict[Interest, Survey]) -> Survey:
    """Return what all machines answer to *waiter*; alike askers get the same answers."""
    interest = waiter.interest
    if waiter.waiting.rejected_by:
        return survey(planner.fleet, interest, waiter)
    if interest not in known:
        known[interest] = survey(planner.fleet, interest, waiter)
    return known[interest]


def acknowledge(planner: Planner, told: Iterable[Wait]) -> None:
    """Say that *told* has reached those whom it concerns: a broken promise is told once."""
    for wait in told:
        waiter = planner.waiters.get(wait.workload)
        if waiter is not None:
            waiter.said = wait.no_later_than
            if waiter.broken is wait.broken:
                waiter.broken = None


def _headline(
    planner: Planner, interest: Interest, waiter: Waiter, counted: Survey
) -> Explanation:
    """Return what bars every place, or the nearest miss: where it is promised a place, if equal."""
    bar = planner.bar_of(waiter)
    if bar is not None:
        return bar
    if not counted.names:
        return Explanation(reason=Reason.NO_MACHINES)
    reason = max(counted.names, key=nearness)
    if waiter.found is not None:
        promised = told(planner, interest, waiter, waiter.found.machine)
        if promised.reason is reason:
            return promised
    return told(planner, interest, waiter, counted.names[reason][0])


def told(
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
    is_own = bool(owner) and owner == viewer.waiting.principal.name
    return Holder(
        workload=workload,
        owner=owner if visible or is_own else None,
        own=is_own,
        promised=True,
    )
