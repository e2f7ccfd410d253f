"""Writing the audit log: an entry is committed together with what it tells of.

So there is no action without an entry, and no entry without an action.
"""

from __future__ import annotations

from typing import Final

from fleet_hub.controller.audit_entry import Action, Actor, AuditEntry, TargetKind
from fleet_hub.controller.core import Transaction


LONGEST_DETAIL: Final = 300
LONGEST_NAME: Final = 255
LONGEST_WHY: Final = 300


def note(
    tx: Transaction,
    actor: Actor,
    action: Action,
    target: str,
    *,
    kind: TargetKind = TargetKind.MACHINE,
    detail: str = "",
) -> None:
    """Write one entry with whatever else *tx* decides; long words are cut."""
    tx.change.audit.append(
        AuditEntry(
            at=tx.now,
            actor=actor.name[:LONGEST_NAME],
            role=actor.role,
            action=action,
            kind=kind,
            target=target[:LONGEST_NAME],
            detail=detail[:LONGEST_DETAIL],
            why=actor.why[:LONGEST_WHY],
        )
    )
