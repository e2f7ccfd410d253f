"""Whether somebody really waits for what somebody else holds."""

from __future__ import annotations

from fleet_contracts.reasons import Holder
from fleet_hub.scheduling.planner import Planner
from fleet_hub.scheduling.telling import told
from fleet_hub.scheduling.waiter import Waiter


def held_up_by(
    planner: Planner, waiter: Waiter, machine: str, handle: str
) -> Holder | None:
    """Return the holder of this handle on *machine*, if its end could help *waiter*.

    It is one of those whom the waiter is told of, and no other: while a quota bars every
    place they are whose work uses that up, and else who holds what the machine is short
    of.
    """
    barred = planner.bar_of(waiter)
    if barred is None and machine not in planner.fleet.entries:
        return None
    why = barred or told(planner, waiter.interest, waiter, machine)
    return next((one for one in why.holders if one.handle == handle), None)
