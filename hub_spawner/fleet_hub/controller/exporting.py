"""The controller's own state, for explanations and for an export."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from fleet_contracts.allocations import LIVE
from fleet_contracts.workloads import Principal
from fleet_hub.controller import copying
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.core import Core
from fleet_hub.controller.discretion import events_of, explanation_of
from fleet_hub.controller.records import MachineRecord, Workload
from fleet_hub.controller.retelling import wait_of
from fleet_hub.controller.snapshots import snapshot
from fleet_hub.controller.states import pin_of
from fleet_hub.controller.timelines import limits_of
from fleet_hub.controller.words import headline_of
from fleet_hub.explaining.state import (
    FleetState,
    MachineNote,
    Subject,
    latest_files,
)
from fleet_hub.explaining.view import View
from fleet_hub.scheduling.decisions import Wait
from fleet_hub.scheduling.snapshot import Pin


def state_of(core: Core, *, timelines: bool = False) -> FleetState:
    """Return the fleet as of now.  Refs are still in it: only ``dump`` leaves the house."""
    model, taken = core.model, snapshot(core)
    return FleetState(
        as_of=datetime.fromtimestamp(taken.now, core.clock.now().tzinfo),
        snapshot=taken,
        workloads=tuple(
            _subject(core, record) for _, record in sorted(model.workloads.items())
        ),
        machines=tuple(
            _note(core, record) for _, record in sorted(model.machines.items())
        ),
        copying=copying.known(core),
        history=model.history.parts(),
        runs=model.runs.seconds(),
        timelines={
            name: events_of(core, name)
            for name, record in sorted(model.workloads.items())
            if timelines and record.state in LIVE
        },
    )


def view_of(core: Core) -> View:
    """Return the fleet as the engine sees it now; true until the next event."""
    if core.wanted:
        run_cycle(core)
    now, model = core.clock.now(), core.model
    planner = core.engine.planner(now)

    def subject(workload: str) -> Subject | None:
        record = model.workloads.get(workload)
        return None if record is None else _subject(core, record)

    def everybody() -> Iterator[Wait]:
        for name in planner.line:
            wait = wait_of(core, model.workloads[name])
            if wait is not None:
                yield wait

    return View(
        as_of=now,
        planner=planner,
        starts={},
        subject=subject,
        principal=lambda name: _principal(core, name),
        files=lambda user, server: _files(core, user, server),
        copying=lambda: copying.known(core),
        waits=everybody,
        history=model.history,
        runs=model.runs,
    )


def _principal(core: Core, name: str) -> Principal | None:
    """Return the Hub user called *name* as they last asked; None: never."""
    known = core.model.with_name(name)
    latest = max(known, key=lambda record: record.asked_at, default=None)
    return None if latest is None else latest.principal


def _files(core: Core, user: str, server: str) -> Pin | None:
    """Return where the files of this user's server are; None: it has none."""
    return latest_files(
        _subject(core, record)
        for record in core.model.with_name(user)
        if record.server_name == server
    )


def _subject(core: Core, record: Workload) -> Subject:
    assignment, limits = record.assignment, limits_of(core, record)
    return Subject(
        workload=record.id,
        generation=record.generation,
        principal=record.principal,
        server=record.server_name,
        profile=record.choice.profile,
        profile_version=record.profile_version,
        class_name=record.choice.class_name,
        state=record.state,
        parked=record.parked,
        asked_at=record.asked_at,
        headline=headline_of(core, record),
        explanation=explanation_of(core, record),
        machine=assignment.machine if assignment else None,
        driver=assignment.runtime.driver.value if assignment else None,
        runtime=assignment.runtime.name if assignment else None,
        placed_at=assignment.since if assignment else None,
        ends_at=limits.ends_at,
        time_limits=limits.time_limits,
        outset=record.outset,
        pin=pin_of(record.home),
        files=pin_of(copying.go_back(record).home),
    )


def _note(core: Core, record: MachineRecord) -> MachineNote:
    presence = core.model.presence[record.name]
    return MachineNote(
        name=record.name,
        provider=record.supplier,
        agent_version=record.agent_version,
        enrolled_at=record.enrolled_at,
        since=presence.since,
        foreign=len(presence.foreign),
    )
