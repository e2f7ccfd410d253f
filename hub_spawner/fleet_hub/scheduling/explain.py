"""What would happen if somebody asked, and why: the same answer as the line's own.

The spawn form, a what-if and a support case ask here.  The answer comes from the
engine that places: nothing can look free here and be refused there.
"""

from __future__ import annotations

from fleet_contracts.reasons import Explanation
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.decisions import Verdict
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Pin, Snapshot, Waiting
from fleet_hub.scheduling.survey import never_answer
from fleet_hub.scheduling.telling import every_answer, position_of, wait_of
from fleet_hub.scheduling.waiter import Waiter


_ASKED = "\N{WHITE QUESTION MARK ORNAMENT}"
"""No workload is called like this: it sorts after all that are in the line."""


def offer(
    snapshot: Snapshot,
    principal: Principal,
    profile: str,
    class_name: str | None = None,
    *,
    pin: Pin | None = None,
) -> Verdict:
    """Return what would happen to this request if it joined the line now."""
    planner = planner_of(snapshot)
    planner.decide(snapshot.now)
    return what_if(planner, principal, profile, class_name, pin=pin)


def explain(snapshot: Snapshot, workload: str) -> Verdict:
    """Return what happens to a workload of the line, down to each machine.

    Raises:
        KeyError: no such workload waits.
    """
    if all(waiting.workload != workload for waiting in snapshot.waiting):
        raise KeyError(workload)
    planner = planner_of(snapshot)
    decided = planner.decide(snapshot.now)
    for placement in decided.placements:
        if placement.workload == workload:
            return Verdict(startable=True, choosable=True, machine=placement.machine)
    for refusal in decided.refusals:
        if refusal.workload == workload:
            return _refused(refusal.explanation)
    return _waits(planner, planner.waiters[workload])


def what_if(
    planner: Planner,
    principal: Principal,
    profile: str,
    class_name: str | None = None,
    *,
    pin: Pin | None = None,
) -> Verdict:
    """Return what would happen to this request; the planner is left as it was."""
    asked = Waiting(
        workload=_ASKED,
        principal=principal,
        profile=profile,
        class_name=class_name,
        asked_at=planner.now,
        pin=pin,
    )
    with planner.imagine(asked) as waiter:
        if isinstance(waiter, Explanation):
            return _refused(waiter)
        return _judge(planner, waiter)


def _judge(planner: Planner, waiter: Waiter) -> Verdict:
    interest = waiter.interest
    never = never_answer(planner.fleet, interest, waiter)
    if never is not None:
        return _refused(never)
    waiter.quota = planner.quotas.exceeded_by(waiter)
    if waiter.quota is None:
        found, _ = planner.seek(waiter)
        if found is not None and found.start <= planner.now:
            best = planner.fleet.best_now(interest, planner.now, ())
            machine = found.machine if best is None else best[0].machine
            return Verdict(startable=True, choosable=True, machine=machine)
        waiter.found = found
        waiter.promise = None if found is None else found.start
    return _waits(planner, waiter)


def _refused(explanation: Explanation) -> Verdict:
    return Verdict(startable=False, choosable=False, explanation=explanation)


def _waits(planner: Planner, waiter: Waiter) -> Verdict:
    wait = wait_of(planner, waiter, position_of(planner, waiter))
    return Verdict(
        startable=False,
        choosable=True,
        ahead=wait.position,
        explanation=wait.explanation,
        counts=wait.counts,
        rejections=tuple(every_answer(planner, waiter)),
        no_later_than=wait.no_later_than,
        change=wait.change,
    )
