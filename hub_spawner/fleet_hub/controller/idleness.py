"""Who computes nothing, and is ended for it where the catalog says so: one rule.

What a holder's page says, what those who wait for it are told, and what ends it are the
same function.  Only what its machine has seen counts: neither an open tab nor a closed
browser does.  Where nothing was seen, or something that cannot be told apart, nobody is
idle: silence ends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from fleet_contracts.allocations import Event, State
from fleet_contracts.capabilities import Usage
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import lifecycle
from fleet_hub.controller.core import Core
from fleet_hub.controller.model import Presence
from fleet_hub.controller.records import StopIntent, Workload
from fleet_hub.controller.time_limits import told_whose
from fleet_hub.scheduling.snapshot import Idle


QUIET_LOAD_MILLI: Final = 500
"""Below this load nothing computes on a machine: one busy cell alone makes it 1000.

Open tabs, idle kernels and the agent make a few hundredths each.
"""
NOTICE: Final = timedelta(minutes=10)
"""How long before its end somebody is told, or half of a limit that is shorter than two."""
FRESH: Final = timedelta(minutes=5)
"""What a machine saw longer ago says nothing of now."""


def take_in(presence: Presence, usage: Usage, now: datetime) -> None:
    """Remember since when a machine is quiet; whose work a load is nobody can tell."""
    load = usage.load_milli
    if load is None or load >= QUIET_LOAD_MILLI:
        presence.quiet_since = None
    elif presence.quiet_since is None:
        presence.quiet_since = now


def idle_of(record: Workload, presence: Presence, now: datetime) -> Idle | None:
    """Return since when *record* computes nothing and when that ends it.

    None: it has no such limit, is at work, or nobody knows.
    """
    assignment, ready_at = record.assignment, record.ready_at
    if assignment is None or assignment.idle_limit_seconds is None:
        return None
    if record.state is not State.READY or ready_at is None or not presence.online:
        return None
    seen_at, held = presence.observed_at, assignment.resources
    if seen_at is None or now - seen_at >= FRESH or held.metal:
        return None
    rests = [presence.resting.get(uuid) for uuid in held.devices]
    known = [since for since in (presence.quiet_since, *rests) if since is not None]
    if len(known) <= len(rests):
        return None
    since = max(*known, ready_at).timestamp()
    return Idle(since=since, ends=since + assignment.idle_limit_seconds)


def told_of(core: Core, machine: str, now: datetime) -> tuple[tuple[str, Idle], ...]:
    """Return who of *machine* has been idle for long enough to be told, by name."""
    return tuple(
        (record.id, idle)
        for record, idle in _idle(core, machine, now)
        if now >= _notice_at(idle)
    )


def idle_ends(core: Core, record: Workload) -> datetime | None:
    """Return when *record* ends unless it computes; None: it is not idle."""
    assignment, now = record.assignment, core.clock.now()
    if assignment is None:
        return None
    idle = idle_of(record, core.model.presence[assignment.machine], now)
    if idle is None or now < _notice_at(idle):
        return None
    return datetime.fromtimestamp(idle.ends, UTC)


def end_idle(core: Core, now: datetime) -> None:
    """End who has been idle for as long as their limit, and warn them before."""
    for machine, presence in core.model.presence.items():
        if presence.quiet_since is None:
            continue
        for record, idle in tuple(_idle(core, machine, now)):
            if now.timestamp() >= idle.ends:
                _end(core, record)
            elif now >= _notice_at(idle):
                _warn(core, record, idle, now)


def _idle(core: Core, machine: str, now: datetime) -> Iterator[tuple[Workload, Idle]]:
    presence = core.model.presence[machine]
    for record in core.model.holders(machine):
        idle = idle_of(record, presence, now)
        if idle is not None:
            yield record, idle


def _notice_at(idle: Idle) -> datetime:
    limit = timedelta(seconds=idle.ends - idle.since)
    ends = datetime.fromtimestamp(idle.ends, tz=UTC)
    return ends - min(NOTICE, limit / 2)


def _warn(core: Core, record: Workload, idle: Idle, now: datetime) -> None:
    """Tell its user once for each time that it rests."""
    assignment = record.assignment
    if assignment is None or (assignment.warned_at or 0.0) >= idle.since:
        return
    left = max(1, round(idle.ends - now.timestamp()))
    with core.transaction() as tx:
        warned = replace(
            record, assignment=replace(assignment, warned_at=now.timestamp())
        )
        tx.record(
            warned,
            TimelineKind.NOTE,
            explanation=Explanation(
                reason=Reason.IDLE_SOON, requested=left, unit="seconds"
            ),
        )


def _end(core: Core, record: Workload) -> None:
    over = told_whose(core, record, Explanation(reason=Reason.IDLE_LIMIT))
    intent = StopIntent(actor="controller", explanation=over)
    with core.transaction() as tx:
        lifecycle.ask_to_stop(core, tx, record, Event.STOP_ASKED, intent)
