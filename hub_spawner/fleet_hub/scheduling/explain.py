"""What would happen if somebody asked, and why: the same answer as the line's own.

The spawn form, a what-if and a support case ask here.  The answer comes from the same
cycle that places: nothing can look free here and be refused there.
"""

from __future__ import annotations

from dataclasses import replace

from fleet_contracts.reasons import Explanation
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.choice import resolve
from fleet_hub.scheduling.decisions import Verdict
from fleet_hub.scheduling.plan import plan
from fleet_hub.scheduling.snapshot import Pin, Snapshot, Waiting


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
    request = resolve(snapshot.catalog, principal, profile, class_name)
    if isinstance(request, Explanation):
        return Verdict(startable=False, choosable=False, explanation=request)
    asked = Waiting(
        workload=_ASKED,
        principal=principal,
        profile=profile,
        class_name=class_name,
        asked_at=snapshot.now,
        pin=pin,
    )
    return _verdict(replace(snapshot, waiting=(*snapshot.waiting, asked)), _ASKED)


def explain(snapshot: Snapshot, workload: str) -> Verdict:
    """Return what happens to a workload of the line, or of one that is asked about.

    Raises:
        KeyError: no such workload waits.
    """
    if all(waiting.workload != workload for waiting in snapshot.waiting):
        raise KeyError(workload)
    return _verdict(snapshot, workload)


def _verdict(snapshot: Snapshot, workload: str) -> Verdict:
    decided = plan(snapshot)
    for placement in decided.placements:
        if placement.workload == workload:
            return Verdict(startable=True, choosable=True, machine=placement.machine)
    for refusal in decided.refusals:
        if refusal.workload == workload:
            return Verdict(
                startable=False, choosable=False, explanation=refusal.explanation
            )
    wait = next(wait for wait in decided.waits if wait.workload == workload)
    return Verdict(
        startable=False,
        choosable=True,
        ahead=wait.position,
        explanation=wait.explanation,
        counts=wait.counts,
        rejections=wait.rejections,
        no_later_than=wait.no_later_than,
        change=wait.change,
    )
