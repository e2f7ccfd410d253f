"""What would happen if somebody asked, and why: the same answer as the line's own.

The spawn form, a what-if and a support case ask here.  The answer comes from the
engine that places: nothing can look free here and be refused there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fleet_contracts.changes import Change, ChangeKind
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.bars import bar_of
from fleet_hub.scheduling.counterfactual import changes_for
from fleet_hub.scheduling.decisions import Verdict
from fleet_hub.scheduling.holders import instant
from fleet_hub.scheduling.plan import planner_of
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.positions import position
from fleet_hub.scheduling.prospects import Prospects
from fleet_hub.scheduling.snapshot import Pin, Snapshot, Waiting
from fleet_hub.scheduling.survey import never_answer, survey
from fleet_hub.scheduling.telling import wait_of
from fleet_hub.scheduling.waiter import Waiter


MOST_TRIED: Final = 4
"""Other classes that are tried for one that has a time."""
_ASKED = "\N{WHITE QUESTION MARK ORNAMENT}"
"""No workload is called like this: it sorts after all that are in the line."""


def explain(snapshot: Snapshot, workload: str) -> Verdict:
    """Return what happens to a workload of the line; ``inspection`` asks each machine.

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
            return refused(refusal.explanation)
    return waits(planner, planner.waiters[workload])


def what_if(
    planner: Planner,
    principal: Principal,
    profile: str,
    class_name: str | None = None,
    *,
    pin: Pin | None = None,
    rejected_by: Mapping[str, Reason] | None = None,
) -> Verdict:
    """Return what would happen to this request; the planner is left as it was."""
    asked = Waiting(
        workload=_ASKED,
        principal=principal,
        profile=profile,
        class_name=class_name,
        asked_at=planner.now,
        pin=pin,
        rejected_by=rejected_by or {},
    )
    with planner.imagine(asked) as waiter:
        if isinstance(waiter, Explanation):
            return refused(waiter)
        verdict = judge(planner, waiter)
        if verdict.startable:
            return verdict
        verdict = _with_change(planner, waiter, verdict)
    if verdict.change is not None:
        return verdict
    return replace(verdict, change=class_with_time(planner, asked, verdict))


def _with_change(planner: Planner, waiter: Waiter, verdict: Verdict) -> Verdict:
    """Return *verdict* with the smallest change that would help, if one would."""
    counts = survey(planner.fleet, waiter.interest, waiter).counts
    changes = changes_for(planner, waiter, counts)
    return replace(verdict, change=changes[0] if changes else None)


def class_with_time(
    planner: Planner, asked: Waiting, verdict: Verdict
) -> Change | None:
    """Return the first other class of the profile for which a time is known.

    Asked for what would wait for something without an end, and only there.  The kin
    come first; nobody is imagined in the line meanwhile.
    """
    profile = planner.catalog.profile_named(asked.profile)
    if not verdict.choosable or verdict.no_later_than is not None or profile is None:
        return None
    mine, *others = planner.catalog.classes_of(profile)
    if asked.class_name is not None:
        classes = (mine, *others)
        mine = next((one for one in classes if one.name == asked.class_name), mine)
        others = [one for one in classes if one is not mine]
    others.sort(key=lambda other: other.accelerator is not mine.accelerator)
    for other in others[:MOST_TRIED]:
        another = replace(
            asked,
            workload=_ASKED,
            class_name=other.name,
            promise=None,
            reservation=None,
        )
        with planner.imagine(another) as waiter:
            bound = _start_of(planner, waiter)
            if isinstance(waiter, Explanation) or bound is None:
                continue
            prospect = Prospects(planner, waiter).of(waiter.request)
            return Change(
                kind=ChangeKind.CLASS,
                requested=mine.name,
                instead=other.name,
                machines=prospect.machines,
                free_now=prospect.free_now,
                starts_by=None if bound <= planner.now else instant(bound),
            )
    return None


def _start_of(planner: Planner, waiter: Waiter | Explanation) -> float | None:
    """Return when *waiter* would start at the latest; None: never, or nobody knows."""
    if isinstance(waiter, Explanation) or _bar(planner, waiter):
        return None
    if never_answer(planner.fleet, waiter.interest, waiter) is not None:
        return None
    found, _ = planner.seek(waiter)
    return None if found is None else found.start


def _bar(planner: Planner, waiter: Waiter) -> Explanation | None:
    return bar_of(planner.fleet, planner.quotas, waiter)


def judge(planner: Planner, waiter: Waiter) -> Verdict:
    """Return what would happen to *waiter*, who was imagined into the line."""
    interest = waiter.interest
    never = never_answer(planner.fleet, interest, waiter)
    if never is not None:
        return refused(never)
    waiter.bar = _bar(planner, waiter)
    if waiter.bar is None:
        found, _ = planner.seek(waiter)
        if found is not None and found.start <= planner.now:
            best = planner.fleet.best_now(interest, planner.now, ())
            machine = found.machine if best is None else best[0].machine
            return Verdict(startable=True, choosable=True, machine=machine)
        waiter.found = found
        waiter.promise = None if found is None else found.start
    return waits(planner, waiter)


def refused(explanation: Explanation) -> Verdict:
    """Return the verdict on what can never be."""
    return Verdict(startable=False, choosable=False, explanation=explanation)


def waits(planner: Planner, waiter: Waiter) -> Verdict:
    """Return the verdict on what stays in the line, or would."""
    wait = wait_of(planner, waiter, position(planner, waiter.workload))
    return Verdict(
        startable=False,
        choosable=True,
        ahead=wait.position,
        explanation=wait.explanation,
        counts=wait.counts,
        rejections=wait.rejections,
        no_later_than=wait.no_later_than,
    )
