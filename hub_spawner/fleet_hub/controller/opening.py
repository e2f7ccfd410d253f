"""A server that was started for somebody absent: kept if it is opened, else given back.

Whether anybody came is what the Hub knows, and the Spawner tells it at each of its
polls.  Only such a word gives something back: while the Hub is away nobody could have
come, so nobody is late.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from fleet_contracts.allocations import Event, State
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller import lifecycle
from fleet_hub.controller.core import Core
from fleet_hub.controller.records import StopIntent, Workload


def unopened_since(core: Core, record: Workload) -> datetime | None:
    """Return since when *record* is ready for somebody who has not come yet.

    None: nobody needs to come.
    """
    waits = record.absent and record.state is State.READY
    return record.ready_at if waits and core.settings.open_seconds else None


def tell(core: Core, record: Workload, *, opened: bool) -> None:
    """Take in the Hub's word about whether somebody has opened *record*.  Idempotent."""
    since = unopened_since(core, record)
    if since is None:
        return
    window = timedelta(seconds=core.settings.open_seconds)
    late = Explanation(reason=Reason.NOT_CLAIMED)
    intent = StopIntent(actor="controller", explanation=late)
    with core.transaction() as tx:
        if opened:
            tx.put(replace(record, absent=False))
        elif core.clock.now() >= since + window:
            lifecycle.ask_to_stop(core, tx, record, Event.STOP_ASKED, intent)
