"""One snapshot, everything that can be decided about it."""

from __future__ import annotations

from dataclasses import replace

from fleet_contracts.causes import Cause
from fleet_hub.scheduling.decisions import Plan
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Snapshot
from fleet_hub.scheduling.telling import waits


def plan(snapshot: Snapshot) -> Plan:
    """Return everything that can be decided about *snapshot*.

    Equal snapshots give equal plans: ties are broken by name.
    """
    planner = planner_of(snapshot)
    decided = planner.decide(snapshot.now)
    return replace(decided, waits=tuple(waits(planner)))


def planner_of(snapshot: Snapshot) -> Planner:
    """Return an engine that knows *snapshot*, and has decided nothing yet."""
    planner = Planner(
        snapshot.catalog, now=snapshot.now, names_visible=snapshot.names_visible
    )
    planner.use(snapshot.usage)
    planner.recover(recovering=snapshot.recovering)
    for machine in sorted(snapshot.machines, key=lambda item: item.name):
        planner.put_machine(machine)
    for waiting in sorted(snapshot.waiting, key=lambda item: item.workload):
        planner.ask(waiting, again=Cause.RESTARTED)
    if snapshot.ranking is not None:
        planner.restore_ranking(snapshot.ranking)
    planner.restore_promises(stand=snapshot.ranking is not None)
    return planner
