"""Why a machine takes nothing at the moment, whoever asks."""

from __future__ import annotations

from dataclasses import dataclass

from fleet_contracts.catalog import TrustPolicy
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.scheduling.holders import instant
from fleet_hub.scheduling.snapshot import MachineState


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a judgement depends on beside the request and the machine."""

    now: float
    trust: TrustPolicy
    recovering: bool = False
    names_visible: bool = True


def machine_trouble(machine: MachineState, context: Context) -> Explanation | None:
    """Return why *machine* takes nothing now, busy or not; None: it takes work."""
    if not machine.online:
        return _silent(machine, context)
    if not machine.inventory_known:
        return Explanation(reason=Reason.CONTROLLER_RECOVERING)
    if machine.agent_too_old:
        return Explanation(reason=Reason.AGENT_TOO_OLD)
    if machine.draining_by is not None:
        return Explanation(reason=Reason.DRAINING, subject=machine.draining_by)
    if machine.metal_counts_to is not None:
        return Explanation(reason=Reason.SAME_DEVICE, subject=machine.metal_counts_to)
    return machine.address_fault or _closed(machine) or _quarantine(machine, context)


def _closed(machine: MachineState) -> Explanation | None:
    """Return why its owner lets it take nothing new, and until when."""
    closed, until = machine.facts.closed, machine.facts.opens_at
    if closed is None:
        return None
    return Explanation(
        reason=closed,
        subject="its owner" if closed is Reason.DRAINING else None,
        detail=None if until is None else f"until {until:%Y-%m-%d %H:%M} {until:%Z}",
    )


def _quarantine(machine: MachineState, context: Context) -> Explanation | None:
    until = machine.quarantined_until
    if until is None or until <= context.now:
        return None
    return Explanation(
        reason=Reason.QUARANTINED, detail=f"until {instant(until):%H:%M} UTC"
    )


def _silent(machine: MachineState, context: Context) -> Explanation:
    since = machine.offline_since
    return Explanation(
        reason=Reason.CONTROLLER_RECOVERING if context.recovering else Reason.OFFLINE,
        detail=None if since is None else f"since {instant(since):%Y-%m-%d %H:%M} UTC",
    )
