"""One request against one machine: it fits, or the nearest miss with its numbers.

A machine may offer several drivers.  Each is judged on its own, and the machine's
answer is the best of them: a fit, else the miss that came closest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fleet_contracts.catalog import TrustPolicy
from fleet_contracts.reasons import FACTS, Explanation, Reason, ReasonKind
from fleet_contracts.trust import relation_of
from fleet_contracts.workloads import DriverName, Principal
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.filters import FILTERS, Candidate, has_the_disk
from fleet_hub.scheduling.holders import instant, told
from fleet_hub.scheduling.room import (
    Room,
    healthy_devices,
    relevant_holders,
    shortage,
)
from fleet_hub.scheduling.snapshot import MachineState, Pin


DRIVER_ORDER: Final = (
    DriverName.NATIVE,
    DriverName.DOCKER,
    DriverName.KUBERNETES,
    DriverName.SIMULATION,
)
"""Which driver is taken where several fit: the least overhead first."""

_NEARNESS: Final = {
    reason: distance
    for distance, reason in enumerate(
        (
            Reason.DATA_NOT_LOCAL,
            Reason.ACCELERATOR_MISMATCH,
            Reason.OS_MISMATCH,
            Reason.RUNTIME_NONE_MATCHES,
            Reason.RUNTIME_MISSING,
            Reason.MODEL_INVALID,
            Reason.DRIVER_UNAVAILABLE,
            Reason.SANDBOX_MISSING,
            Reason.SUPPORT_MISSING,
            Reason.CAPABILITY_MISSING,
            Reason.GPU_COUNT_TOO_SMALL,
            Reason.DEVICE_MODEL_MISMATCH,
            Reason.COMPUTE_CAPABILITY_TOO_LOW,
            Reason.VRAM_TOO_SMALL,
            Reason.DRIVER_TOO_OLD,
            Reason.CPU_TOO_SMALL,
            Reason.MEMORY_TOO_SMALL,
            Reason.LABEL_MISMATCH,
            Reason.NOT_IN_AUDIENCE,
            Reason.OWNER_FORBIDS,
            Reason.ISOLATION_TOO_WEAK,
            Reason.DISK_TOO_SMALL,
            Reason.CAPABILITIES_UNKNOWN,
            Reason.AGENT_REJECTED,
            Reason.OFFLINE,
            Reason.AGENT_TOO_OLD,
            Reason.CONTROLLER_RECOVERING,
            Reason.DRAINING,
            Reason.QUARANTINED,
            Reason.UNHEALTHY,
            Reason.GPU_BUSY,
            Reason.METAL_BUSY,
            Reason.CPU_BUSY,
            Reason.MEMORY_BUSY,
            Reason.DISK_BUSY,
            Reason.BEHIND,
        )
    )
}
"""How far a machine came before it said no: later is nearer."""

HOPELESS: Final = frozenset({ReasonKind.NEVER, ReasonKind.NOT_ALLOWED})
"""Kinds of "no" that waiting cannot clear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a judgement depends on beside the request and the machine."""

    now: float
    trust: TrustPolicy
    recovering: bool
    names_visible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks, and what is particular to this one request."""

    principal: Principal
    pin: Pin | None = None
    rejected_by: Mapping[str, Reason]


def nearness(explanation: Explanation) -> tuple[bool, int]:
    """Return how near a miss is; the greatest is the headline among machines."""
    return explanation.kind not in HOPELESS, _NEARNESS.get(explanation.reason, 0)


def nearest(explanations: Iterable[Explanation]) -> Explanation | None:
    """Return the nearest miss; of equal ones the first."""
    return max(explanations, key=nearness, default=None)


def judge(
    request: Request, asker: Asker, room: Room, context: Context
) -> DriverName | Explanation:
    """Return the driver through which *request* fits now, or why it does not."""
    machine = room.machine
    misses: list[Explanation] = []
    for driver in drivers_for(machine, asker.pin):
        found = ever_refusal(request, asker, machine, driver, context)
        found = found or state_refusal(request, asker, machine, context)
        if found is None:
            found = shortage(room, request, driver)
            if found is None:
                return driver
            found = with_holders(found, request, asker, room, context)
        misses.append(found)
    miss = nearest(misses) or Explanation(reason=Reason.DATA_NOT_LOCAL)
    return miss.model_copy(update={"machine": machine.name})


def drivers_for(machine: MachineState, pin: Pin | None) -> tuple[DriverName, ...]:
    """Return the drivers to try: a workload with files goes back to its own only."""
    if pin is None:
        return DRIVER_ORDER
    return (pin.driver,) if pin.machine == machine.name else ()


def ever_refusal(
    request: Request,
    asker: Asker,
    machine: MachineState,
    driver: DriverName,
    context: Context,
) -> Explanation | None:
    """Return why this machine can never run *request* through *driver*."""
    if not machine.online and not machine.facts.known:
        # It has not said what it is since the controller started: nothing is ruled
        # out, and its silence is told below.
        return None
    candidate = Candidate(
        request=request,
        driver=driver,
        facts=machine.facts,
        labels=machine.labels,
        sharing=machine.sharing,
        relation=relation_of(
            asker.principal,
            owner=machine.owner,
            users=machine.sharing.users,
            groups=machine.sharing.groups,
        ),
        trust=context.trust,
    )
    for check in FILTERS:
        found = check(candidate)
        if found is not None:
            return found
    return has_the_disk(candidate)


def state_refusal(
    request: Request, asker: Asker, machine: MachineState, context: Context
) -> Explanation | None:
    """Return why the machine takes nothing at the moment, busy or not."""
    if not machine.online:
        return _silent(machine, context)
    if not machine.inventory_known:
        return Explanation(reason=Reason.CONTROLLER_RECOVERING)
    if machine.agent_too_old:
        return Explanation(reason=Reason.AGENT_TOO_OLD)
    if machine.draining_by is not None:
        return Explanation(reason=Reason.DRAINING, subject=machine.draining_by)
    return _set_aside(asker, machine, context) or _unhealthy(request, machine)


def with_holders(
    found: Explanation, request: Request, asker: Asker, room: Room, context: Context
) -> Explanation:
    """Return *found* with who holds what is missing."""
    holders = told(
        relevant_holders(room, request, found.reason),
        viewer=asker.principal.name,
        names_visible=context.names_visible,
    )
    return found.model_copy(update={"holders": holders})


def is_hopeless(explanation: Explanation) -> bool:
    """Return whether waiting cannot clear *explanation*."""
    return FACTS[explanation.reason].kind in HOPELESS


def _silent(machine: MachineState, context: Context) -> Explanation:
    since = machine.offline_since
    return Explanation(
        reason=Reason.CONTROLLER_RECOVERING if context.recovering else Reason.OFFLINE,
        detail=None if since is None else f"since {instant(since):%Y-%m-%d %H:%M} UTC",
    )


def _set_aside(
    asker: Asker, machine: MachineState, context: Context
) -> Explanation | None:
    until = machine.quarantined_until
    if until is not None and until > context.now:
        return Explanation(
            reason=Reason.QUARANTINED, detail=f"until {instant(until):%H:%M} UTC"
        )
    rejected = asker.rejected_by.get(machine.name)
    if rejected is not None:
        return Explanation(reason=Reason.AGENT_REJECTED, subject=rejected.value)
    return None


def _unhealthy(request: Request, machine: MachineState) -> Explanation | None:
    wanted = request.chosen.devices
    healthy = len(healthy_devices(machine, request))
    if healthy >= wanted:
        return None
    return Explanation(
        reason=Reason.UNHEALTHY, requested=wanted, capacity=healthy, unit="devices"
    )
