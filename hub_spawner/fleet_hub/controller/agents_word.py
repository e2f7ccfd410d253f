"""How far an agent's word goes: what it says of others, of time and of numbers.

A machine is its owner's, and may say anything.  What it says of its own work is taken;
whatever would reach beyond that is left out here.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller.core import Core
from fleet_hub.controller.errors import LinkRefusedError


LONGEST_DETAIL: Final = 300
LONGEST_SUBJECT: Final = 100
OLDEST: Final = timedelta(days=30)
"""A machine that was cut off tells late what happened early."""
MOST_AHEAD: Final = timedelta(minutes=5)
MOST_GENERATIONS: Final = 1000
"""By how many starts of the controller a backup may be too old."""
CONTROLLERS_OWN: Final = frozenset(
    {
        Reason.PROMISE_BROKEN,
        Reason.PLACE_KEPT,
        Reason.PLACE_MOVED,
        Reason.FILES_TO_COPY,
        Reason.NOT_EVALUATED_YET,
        Reason.BEHIND,
    }
)
"""Reasons that no agent has."""
LIFT_REST: Final = timedelta(minutes=1)


def own_word(explanation: Explanation | None) -> Explanation | None:
    """Return what an agent may say of its own work: of no holder, no other machine.

    Nor of the line: who waits how long, and why, is the controller's alone to tell.
    """
    if explanation is None or explanation.reason in CONTROLLERS_OWN:
        return None
    subject, detail = explanation.subject, explanation.detail
    return explanation.model_copy(
        update={
            "machine": None,
            "holders": (),
            "position": None,
            "subject": None if subject is None else _words(subject, LONGEST_SUBJECT),
            "detail": None if detail is None else _words(detail, LONGEST_DETAIL),
        }
    )


def plausible(at: datetime | None, now: datetime) -> datetime | None:
    """Return when an agent says that something happened; *now* if it cannot be."""
    if at is None:
        return None
    try:
        age = now - at
    except OverflowError:
        return now
    return at if -MOST_AHEAD <= age <= OLDEST else now


def lifted_generation(core: Core, machine: str, epoch: int) -> int | None:
    """Return the generation needed above *epoch*, which *machine* has seen.

    That our store was restored from a backup shows in that way.  A machine that lies
    must not use the numbers up: once the lift is durable, note it in ``lifted_at``.

    Raises:
        LinkRefusedError: no backup is that old, or the machine asks again and again.
    """
    needed = core.model.generation_above(epoch)
    if needed is None:
        return None
    now, earlier = core.clock.now(), core.model.lifted_at.get(machine)
    too_soon = earlier is not None and now - earlier < LIFT_REST
    if too_soon or needed - core.model.generation > MOST_GENERATIONS:
        raise LinkRefusedError(
            "epoch_implausible",
            "This agent has seen an order that this controller cannot have given. If "
            "the controller's store was restored from a very old backup, empty the "
            "agent's ledger once nothing runs there.",
            retry=True,
        )
    return needed


def _words(text: str, longest: int) -> str:
    kept = "".join(sign if sign.isprintable() else " " for sign in text[: longest + 1])
    return kept if len(kept) <= longest else f"{kept[:longest]}…"
