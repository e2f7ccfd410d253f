"""May somebody still have what they were given?  Asked again before it is launched.

Between a turn and whoever comes for it lie minutes, in which a group may have lost a
member and a machine part of its audience.  What runs already is left alone.
"""

from __future__ import annotations

from fleet_contracts.reasons import Explanation
from fleet_contracts.trust import relation_of, trust_refusal
from fleet_hub.controller.core import Core
from fleet_hub.controller.records import Workload


def refusal_now(core: Core, record: Workload) -> Explanation | None:
    """Return why the machine that *record* was given serves its user no more."""
    assignment = record.assignment
    machine = core.model.machines.get(assignment.machine) if assignment else None
    if assignment is None or machine is None:
        return None
    refusal = trust_refusal(
        relation_of(
            record.principal,
            owner=machine.owner,
            users=machine.members,
            groups=machine.member_groups,
        ),
        assignment.runtime.driver,
        policy=core.catalogs.current().trust,
        admin_allows=machine.admin_allows,
        owner_allows=machine.owner_allows,
    )
    if refusal is None:
        return None
    return refusal.model_copy(update={"machine": machine.name})
