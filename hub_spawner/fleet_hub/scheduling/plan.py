"""The cycle: everything that can be decided about one snapshot, in one pass.

1. Put the line in order.
2. For each workload in turn: may it be asked for at all, and does a quota allow it now?
3. Judge every machine, beside what it holds and what this cycle already promised.
4. Of the machines that fit take the best; of those that do not, tell the nearest miss.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fleet_contracts.devices import reserves_metal
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.selection import runtime_spec
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.scheduling.choice import Request, resolve
from fleet_hub.scheduling.decisions import Placement, Plan, Refusal, Wait
from fleet_hub.scheduling.headline import counts_of, examples_of, fleet_answer
from fleet_hub.scheduling.judgement import Asker, Context, is_hopeless, judge
from fleet_hub.scheduling.line import in_line_order
from fleet_hub.scheduling.quotas import Totals, held_amounts, quota_in_use, totals
from fleet_hub.scheduling.room import Room, free_devices, resources_for, room_of
from fleet_hub.scheduling.snapshot import Allocation, MachineState, Snapshot, Waiting


@dataclass(slots=True)
class _Cycle:
    """What this cycle has decided so far."""

    snapshot: Snapshot
    context: Context
    rooms: dict[str, Room]
    held: Totals
    placements: list[Placement] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)


def plan(snapshot: Snapshot) -> Plan:
    """Return everything that can be decided about *snapshot*.

    Equal snapshots give equal plans: ties are broken by name.
    """
    cycle = _Cycle(
        snapshot=snapshot,
        context=Context(
            now=snapshot.now,
            trust=snapshot.catalog.trust,
            recovering=snapshot.recovering,
            names_visible=snapshot.names_visible,
        ),
        rooms={
            machine.name: room_of(machine)
            for machine in sorted(snapshot.machines, key=lambda item: item.name)
        },
        held=totals(item for machine in snapshot.machines for item in machine.held),
    )
    for waiting in in_line_order(snapshot):
        _decide(cycle, waiting)
    return Plan(
        placements=tuple(cycle.placements),
        refusals=tuple(cycle.refusals),
        waits=tuple(cycle.waits),
    )


def _decide(cycle: _Cycle, waiting: Waiting) -> None:
    catalog = cycle.snapshot.catalog
    request = resolve(
        catalog, waiting.principal, waiting.profile, waiting.class_name, waiting.model
    )
    if isinstance(request, Explanation):
        cycle.refusals.append(Refusal(workload=waiting.workload, explanation=request))
        return
    asker = Asker(
        principal=waiting.principal, pin=waiting.pin, rejected_by=waiting.rejected_by
    )
    fits: list[tuple[Room, DriverName]] = []
    misses: list[Explanation] = []
    for room in cycle.rooms.values():
        found = judge(request, asker, room, cycle.context)
        if isinstance(found, Explanation):
            misses.append(found)
        else:
            fits.append((room, found))
    quota = quota_in_use(catalog, waiting.principal, request.chosen, cycle.held)
    if fits and quota is None:
        _place(cycle, waiting, request, fits)
        return
    answer = fleet_answer(misses) if not fits else None
    if answer is not None and is_hopeless(answer):
        cycle.refusals.append(Refusal(workload=waiting.workload, explanation=answer))
        return
    _wait(cycle, waiting, quota or answer, misses)


def _place(
    cycle: _Cycle,
    waiting: Waiting,
    request: Request,
    fits: list[tuple[Room, DriverName]],
) -> None:
    ranked = sorted(
        fits, key=lambda fit: (_score(fit[0], request), fit[0].machine.name)
    )
    room, driver = ranked[0]
    placement = _placement(waiting, request, room, driver, ranked)
    cycle.placements.append(placement)
    promised = _promised(cycle.snapshot, waiting, request, placement)
    cycle.held.add(promised.owner, promised.groups, held_amounts(promised))
    cycle.rooms[room.machine.name] = room_of(
        room.machine, (*room.held[len(room.machine.held) :], promised)
    )


def _score(room: Room, request: Request) -> tuple[tuple[str, float], ...]:
    """Return the terms that count, the most important first; the least wins.

    CPU work goes where no accelerator waits for somebody; then the tightest fit wins,
    so that large gaps stay for large requests.
    """
    chosen = request.chosen
    spared = chosen.accelerator is Accelerator.CPU and bool(room.machine.facts.devices)
    return (
        ("has_accelerators", float(spared)),
        ("devices_left", float(len(free_devices(room, request)) - chosen.devices)),
        ("cpu_milli_left", float((room.cpu_milli or 0) - chosen.cpu_milli)),
        ("memory_bytes_left", float((room.memory_bytes or 0) - chosen.memory_bytes)),
    )


def _placement(
    waiting: Waiting,
    request: Request,
    room: Room,
    driver: DriverName,
    ranked: list[tuple[Room, DriverName]],
) -> Placement:
    resources = resources_for(room, request, driver)
    accelerator = request.chosen.accelerator
    return Placement(
        workload=waiting.workload,
        machine=room.machine.name,
        driver=driver,
        runtime=runtime_spec(
            request.selections[driver],
            accelerator=accelerator,
            driver=driver,
            catalog_digest=request.catalog_digest,
        ),
        class_name=request.chosen.name,
        resources=resources,
        limit_seconds=request.limit_seconds,
        score=_score(room, request),
        runners_up=tuple(other.machine.name for other, _ in ranked[1:4]),
        note=_note(room.machine, driver, accelerator),
    )


def _note(
    machine: MachineState, driver: DriverName, accelerator: Accelerator
) -> Explanation | None:
    """Return what the user should know: CPU work on a Mac keeps its GPU from others."""
    if accelerator is Accelerator.MPS or not reserves_metal(
        os=machine.facts.os, driver=driver, accelerator=accelerator
    ):
        return None
    return Explanation(reason=Reason.METAL_RESERVED, machine=machine.name)


def _promised(
    snapshot: Snapshot, waiting: Waiting, request: Request, placement: Placement
) -> Allocation:
    limit = request.limit_seconds
    return Allocation(
        workload=waiting.workload,
        user_id=waiting.principal.user_id,
        owner=waiting.principal.name,
        groups=waiting.principal.groups,
        resources=placement.resources,
        driver=placement.driver,
        kind=waiting.kind,
        class_name=placement.class_name,
        devices_asked=request.chosen.devices,
        since=snapshot.now,
        ends_by=None if limit is None else snapshot.now + limit,
    )


def _wait(
    cycle: _Cycle,
    waiting: Waiting,
    explanation: Explanation | None,
    misses: list[Explanation],
) -> None:
    position = len(cycle.waits)
    headline = explanation or Explanation(reason=Reason.NOT_EVALUATED_YET)
    cycle.waits.append(
        Wait(
            workload=waiting.workload,
            explanation=headline.model_copy(update={"position": position}),
            position=position,
            counts=counts_of(misses),
            rejections=examples_of(misses),
        )
    )
