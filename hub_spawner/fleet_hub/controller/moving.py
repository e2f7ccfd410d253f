"""Giving somebody another place in the line: an admin's word, which the log keeps.

Who is put first comes before every priority, and starts as soon as a machine has room.
Nothing that runs is ended, quotas hold, and a promise to somebody else that moves later
by it is told with its cause, as where any higher priority comes.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Final

from fleet_contracts.language import mark
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import audit
from fleet_hub.controller.audit_entry import Action, Actor, TargetKind
from fleet_hub.controller.core import Core
from fleet_hub.controller.errors import RequestRefusedError
from fleet_hub.controller.model import WAITING
from fleet_hub.controller.records import Workload


BEYOND: Final = 10_000_000
"""More than any priority of the catalog, in both directions."""


class Place(StrEnum):
    """Where in the line."""

    FIRST = "first"
    """Before everybody, and before whoever was put first earlier."""
    USUAL = "usual"
    """By priority, fair share and age."""
    LAST = "last"
    """Behind everybody who waits or is yet to come."""


def move(core: Core, record: Workload, place: Place, *, by: Actor) -> None:
    """Give *record* another place, durably.

    Raises:
        RequestRefusedError: it does not wait any more.
    """
    if record.state not in WAITING or record.stop is not None:
        raise RequestRefusedError(
            Explanation(
                reason=Reason.INVALID_REQUEST,
                detail=mark("It does not wait in the line any more."),
            )
        )
    with core.transaction() as tx:
        moved = tx.put(replace(record, moved=_moved(core, place)))
        tx.record(
            moved,
            TimelineKind.NOTE,
            actor="admin",
            explanation=Explanation(reason=Reason.PLACE_MOVED),
        )
        audit.note(
            tx,
            by,
            Action.MOVED_IN_LINE,
            record.id,
            kind=TargetKind.WORKLOAD,
            detail=f"{place.value}: {record.principal.name}/{record.server_name}",
        )


def _moved(core: Core, place: Place) -> int:
    if place is Place.USUAL:
        return 0
    known = [record.moved for record in core.model.waiting()]
    if place is Place.FIRST:
        return max(BEYOND, *known) + 1
    return min(-BEYOND, *known) - 1
