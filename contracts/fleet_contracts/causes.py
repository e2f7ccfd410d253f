"""Why a promised time cannot be kept, as people read it.

A cause travels as a code, like everything that is told; beside these it may be any
reason for which a machine takes nothing.  Who came before is named as far as the reader
may know them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from fleet_contracts.filling import foreign
from fleet_contracts.language import said, translated
from fleet_contracts.phrases import PHRASES
from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_contracts.timeline_phrases import TEXTS


class Cause(StrEnum):
    """What took the ground from a promise, where no reason of a machine says it."""

    PRIORITY = "priority"
    PUT_FIRST = "put_first"
    MOVED = "moved"
    QUOTA = "quota"
    LESS_ROOM = "less_room"
    HOLDER_OVERDUE = "holder_overdue"
    MACHINE_REMOVED = "machine_removed"
    RETURNED_TO_LINE = "returned_to_line"
    RESTARTED = "restarted"


CAUSES: Final[dict[str, str]] = {
    Cause.PRIORITY: "{who} has a higher priority",
    Cause.PUT_FIRST: "an admin put {who} first in the line",
    Cause.MOVED: "an admin gave it another place in the line",
    Cause.QUOTA: "a quota is in use",
    Cause.LESS_ROOM: "there is less room than there was",
    Cause.HOLDER_OVERDUE: "something there has not ended by its limit",
    Cause.MACHINE_REMOVED: "it was taken out of the fleet",
    Cause.RETURNED_TO_LINE: "it had to be given a place anew",
    Cause.RESTARTED: "the controller started anew",
}
"""Inside a sentence, after "because"."""

_REASONS: Final = frozenset(Reason)


def because(explanation: Explanation) -> str | None:
    """Return why the promise of *explanation* cannot be kept; None: nothing was said."""
    cause = explanation.subject
    if not cause:
        return None
    if cause in CAUSES:
        return said(CAUSES[cause], {"who": _who(explanation.holders)})
    if cause in _REASONS:
        return said(PHRASES[Reason(cause)], {})
    # A newer controller has causes that have no words here yet.
    return foreign(cause.replace("_", " "))


def _who(holders: tuple[Holder, ...]) -> str:
    """Return whose server came before."""
    first = holders[0] if holders else None
    if first is not None and first.own:
        return translated(TEXTS["own_server"])
    if first is not None and first.owner:
        return said(TEXTS["server_of"], {"owner": foreign(first.owner)})
    return translated(TEXTS["other_server"])
