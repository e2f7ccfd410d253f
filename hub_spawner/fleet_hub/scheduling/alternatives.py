"""Ways out when the new choice can never run where the files are.

They are offered and never taken: nobody's files are left behind or moved silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.decisions import Alternative, AlternativeKind
from fleet_hub.scheduling.explain import what_if
from fleet_hub.scheduling.nearness import TAKES_NO_COPY
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.snapshot import Pin


def alternatives(
    planner: Planner,
    principal: Principal,
    profile: str,
    class_name: str,
    pin: Pin,
    *,
    unfit: Mapping[str, Reason] | None = None,
) -> Iterator[Alternative]:
    """Yield what else *principal* may do, the ways that keep the files first.

    Asked only where this choice is impossible on the machine of *pin*.  *unfit* are
    machines to which no files can be copied; None: these files cannot be.
    """
    offered = planner.catalog.profile_named(profile)
    classes = offered.classes if offered is not None else ()
    if pin.class_name in classes and pin.class_name != class_name:
        kept = what_if(planner, principal, profile, pin.class_name, pin=pin)
        if kept.choosable:
            yield Alternative(
                kind=AlternativeKind.KEEP_CLASS,
                class_name=pin.class_name,
                machine=pin.machine,
            )
    if unfit is not None:
        copied = what_if(planner, principal, profile, class_name, rejected_by=unfit)
        why = copied.explanation
        hindered = why is not None and why.reason in TAKES_NO_COPY
        if copied.choosable and not hindered:
            yield Alternative(
                kind=AlternativeKind.COPY_FILES,
                class_name=class_name,
                machine=copied.machine,
            )
    fresh = what_if(planner, principal, profile, class_name)
    if fresh.choosable:
        yield Alternative(
            kind=AlternativeKind.FRESH_FOLDER,
            class_name=class_name,
            machine=fresh.machine,
        )
