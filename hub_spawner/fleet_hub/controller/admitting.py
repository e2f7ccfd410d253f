"""The admission cycle: look at what changed, decide, make it durable, tell."""

from __future__ import annotations

from time import perf_counter

from fleet_contracts.allocations import Event, State
from fleet_contracts.reasons import Explanation
from fleet_contracts.timeline import TimelineKind
from fleet_hub.controller import copying, lifecycle
from fleet_hub.controller.asking import version_of
from fleet_hub.controller.core import Core, Transaction
from fleet_hub.controller.records import Assignment, Decided, Issued, Workload
from fleet_hub.controller.retelling import AT_A_TIME, retell
from fleet_hub.controller.states import pin_of
from fleet_hub.scheduling.decisions import Placement, Plan, Rule
from fleet_hub.scheduling.likely import Waited
from fleet_hub.scheduling.ways_out import told, ways_back


def run_cycle(core: Core) -> Plan:
    """Decide everything that can be decided now, and begin to carry it out.

    The placements are one change: they hold their resources, and their timelines say
    so, before any agent hears of them.  Those who go on waiting are told afterwards.
    """
    core.wanted = False
    began = perf_counter()
    decided = core.engine.decide(core.clock.now())
    ways = {one.workload: _ways_out(core, one.workload) for one in decided.refusals}
    try:
        with core.transaction() as tx:
            for refusal in decided.refusals:
                record = tx.workload(refusal.workload)
                for way in ways[refusal.workload]:
                    record = tx.record(record, TimelineKind.NOTE, explanation=way)
                lifecycle.finish(
                    core, tx, record, Event.REFUSED, explanation=refusal.explanation
                )
            for placement in decided.placements:
                _place(core, tx, placement)
    except BaseException:
        core.engine.forget()
        raise
    for observer in core.observers:
        observer.decided(decided, perf_counter() - began)
    core.engine.line_moved(core.watchers.watched())
    retell(core, AT_A_TIME, only_urgent=True)
    # What this cycle itself changed needs no second look.
    core.wanted = False
    if decided.is_unfinished:
        core.want_cycle()
    return decided


def _ways_out(core: Core, workload: str) -> tuple[Explanation, ...]:
    """Return what may be done instead of a choice that the files stand in the way of."""
    record = core.model.workloads[workload]
    pin = pin_of(copying.go_back(record).home)
    if pin is None:
        return ()
    planner = core.engine.planner(core.clock.now())
    found = ways_back(
        planner,
        record.principal,
        record.choice.profile,
        record.choice.class_name,
        pin=pin,
        copying=copying.known(core),
    )
    return told(found, planner.catalog)


def _place(core: Core, tx: Transaction, placement: Placement) -> None:
    record = tx.workload(placement.workload)
    if record.state is State.REQUESTED:
        record = tx.advance(record, Event.ADMITTED)
    chosen = (placement.machine, placement.driver)
    if record.origin and chosen == (
        record.origin.home.machine,
        record.origin.home.driver,
    ):
        # The files are right there: what kept it from them is over.
        record = tx.put(copying.go_back(record))
    attended = core.is_attended(record.id)
    assignment = Assignment(
        machine=placement.machine,
        allocation=core.ids.allocation(),
        epoch=core.model.next_epoch(),
        runtime=placement.runtime,
        class_name=placement.class_name,
        resources=placement.resources,
        devices_asked=placement.devices_asked,
        limit_seconds=placement.limit_seconds,
        idle_limit_seconds=_idle_limit(core, record, placement.class_name),
        since=tx.now,
        ends_by=placement.ends_by,
        launched=attended,
    )
    tx.change.issued[assignment.allocation] = Issued(
        allocation=assignment.allocation,
        epoch=assignment.epoch,
        machine=assignment.machine,
        workload=record.id,
        generation=record.generation,
        resources=assignment.resources,
        driver=assignment.runtime.driver,
    )
    outset, waited = record.outset, record.waited
    if outset is not None:
        moment = tx.now.timestamp()
        came = outset.came(moment)
        waited = Waited(placement.class_name, outset.part(moment), moment, came)
    record = tx.advance(
        record,
        Event.PLACED,
        assignment=assignment,
        outset=None,
        waited=waited,
        decided=Decided(
            at=tx.now.timestamp(),
            waited=max(0.0, (tx.now - record.asked_at).total_seconds()),
            class_name=placement.class_name,
            machine=placement.machine,
            rule=_rule(record, placement.rule),
        ),
        explanation=placement.note,
        profile_version=version_of(core, record.choice),
    )
    record = tx.record(record, TimelineKind.PLACED)
    if placement.note is not None:
        record = tx.record(record, TimelineKind.NOTE, explanation=placement.note)
    if attended:
        lifecycle.launch(core, tx, record)


def _idle_limit(core: Core, record: Workload, class_name: str) -> float | None:
    catalog = core.catalogs.current()
    profile = catalog.profile_named(record.choice.profile)
    chosen = catalog.class_named(class_name)
    if profile is None or chosen is None:
        return None
    return catalog.idle_limit_seconds(profile, chosen)


def _rule(record: Workload, rule: Rule) -> Rule:
    return Rule.MOVED if record.moved > 0 and rule is Rule.PRIORITY else rule
