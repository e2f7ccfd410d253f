"""What a placement holds, and why this machine."""

from __future__ import annotations

from fleet_contracts.devices import MACOS
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.scheduling.answers import resources_of
from fleet_hub.scheduling.choice import SLACK_SECONDS
from fleet_hub.scheduling.decisions import Placement, Rule
from fleet_hub.scheduling.entries import Entry, Found
from fleet_hub.scheduling.profile import FOREVER
from fleet_hub.scheduling.snapshot import Allocation
from fleet_hub.scheduling.waiter import Waiter


_TERMS = (
    *("spared", "device_memory_bytes", "devices_left"),
    *("cpu_milli_left", "memory_bytes_left"),
)


def placement_of(
    waiter: Waiter,
    entry: Entry,
    found: Found,
    *,
    score: tuple[int, ...],
    runners_up: tuple[str, ...],
    rule: Rule,
    now: float,
) -> Placement:
    """Return the placement of *waiter* on *entry*, which has room for it."""
    request, driver = waiter.request, found.need.driver
    accelerator = request.chosen.accelerator
    resources = resources_of(entry, request, found.amounts)
    end = now + request.hold_seconds - SLACK_SECONDS
    return Placement(
        workload=waiter.workload,
        machine=entry.machine.name,
        driver=driver,
        runtime=request.spec(driver),
        class_name=request.chosen.name,
        resources=resources,
        devices_asked=request.chosen.devices,
        limit_seconds=request.limit_seconds,
        ends_by=None if end == FOREVER else end,
        score=tuple(zip(_TERMS, map(float, score), strict=False)),
        runners_up=runners_up,
        rule=rule,
        note=_note(entry, driver, metal=resources.metal, accelerator=accelerator),
    )


def promised_allocation(waiter: Waiter, placement: Placement, now: float) -> Allocation:
    """Return what *placement* holds from now on."""
    waiting = waiter.waiting
    return Allocation(
        workload=waiting.workload,
        user_id=waiting.principal.user_id,
        owner=waiting.principal.name,
        groups=waiting.principal.groups,
        resources=placement.resources,
        driver=placement.driver,
        kind=waiting.kind,
        class_name=placement.class_name,
        devices_asked=placement.devices_asked,
        title=waiter.request.profile.title,
        since=now,
        ends_by=placement.ends_by,
    )


def _note(
    entry: Entry, driver: DriverName, *, metal: bool, accelerator: Accelerator
) -> Explanation | None:
    """Return what the user should know: CPU work on a Mac keeps its GPU from others."""
    if accelerator is Accelerator.MPS:
        return None
    if metal:
        return Explanation(reason=Reason.METAL_RESERVED, machine=entry.machine.name)
    if driver is DriverName.NATIVE and entry.machine.facts.os == MACOS:
        return Explanation(reason=Reason.METAL_SHARED, machine=entry.machine.name)
    return None
