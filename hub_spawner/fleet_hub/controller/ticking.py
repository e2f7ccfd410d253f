"""What time alone brings about: silence, claims that nobody came for, rest."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from fleet_contracts.allocations import Event, State
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import enrolling, idleness, lifecycle, reporting
from fleet_hub.controller.core import Core
from fleet_hub.controller.model import Presence


log = structlog.get_logger()


def tick(core: Core) -> None:
    """Do everything that is due.  Called about twice a second; cheap when idle."""
    now = core.clock.now()
    reporting.write_progress(core)
    for machine, presence in core.model.presence.items():
        _tell_silence(core, machine, presence, now)
    _give_back_unclaimed(core, now)
    _end_rest(core, now)
    idleness.end_idle(core, now)
    _drop_codes(core, now)
    recovery = timedelta(seconds=core.settings.recovery_seconds)
    if not core.recovered and now >= core.model.started_at + recovery:
        # "Still starting" is over as a reason: who waits is told the true one.
        core.recovered = True
        core.want_cycle()


def _tell_silence(core: Core, machine: str, presence: Presence, now: datetime) -> None:
    """Mark what a silent machine runs as unknown, once.  It stays held."""
    limit = timedelta(seconds=core.settings.silence_seconds)
    if presence.online or presence.silence_told or now - presence.since < limit:
        return
    presence.silence_told = True
    core.model.stirred.add(machine)
    silent = Explanation(reason=Reason.OFFLINE, machine=machine)
    with core.transaction() as tx:
        for record in list(core.model.holders(machine)):
            if record.assignment is not None and not record.assignment.launched:
                lifecycle.back_in_line(
                    core, tx, record, Event.WITHDRAWN, explanation=silent
                )
            elif record.state is not State.UNKNOWN:
                unknown = tx.advance(record, Event.MACHINE_SILENT, explanation=silent)
                tx.record(unknown, TimelineKind.SILENT, explanation=silent)
    log.info("machine silent", machine=machine)
    core.want_cycle()


def _give_back_unclaimed(core: Core, now: datetime) -> None:
    """End what the Hub was asked to start and nobody came for."""
    late = Explanation(reason=Reason.NOT_CLAIMED)
    for record in core.model.turns_to_claim():
        assignment = record.assignment
        if assignment is None or assignment.claim_by is None:
            continue
        if now < assignment.claim_by:
            continue
        with core.transaction() as tx:
            stopping = tx.advance(record, Event.STOP_ASKED)
            lifecycle.finish(core, tx, stopping, Event.ENDED, explanation=late)


def _drop_codes(core: Core, now: datetime) -> None:
    earliest = enrolling.earliest_expiry(core)
    if earliest is not None and earliest <= now:
        with core.transaction() as tx:
            enrolling.drop_expired(core, tx)


def _end_rest(core: Core, now: datetime) -> None:
    """Let a machine be tried again by a workload that it rejected a while ago."""
    rest = timedelta(seconds=core.settings.rejection_rest_seconds)
    for name, machine in core.model.rested(now - rest):
        record = core.model.workloads.get(name)
        if record is None or machine not in record.rejected_by:
            continue
        others = {key: why for key, why in record.rejected_by.items() if key != machine}
        with core.transaction() as tx:
            tx.put(replace(record, rejected_by=others))
