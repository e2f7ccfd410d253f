"""The agent's own check of a launch: what the machine refuses, whoever asks.

The controller has judged the launch already.  This is the second look of the one who
would bear the consequences; it reads only the machine's own facts and ledger.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from fleet_agent.ledger_entry import Entry, Key
from fleet_contracts.catalog import Relation, TrustPolicy
from fleet_contracts.devices import device_conflict, held_here
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.selection import verify_dispatch
from fleet_contracts.trust import relation_of, trust_refusal
from fleet_contracts.workloads import DriverName, Principal, Resources, WorkloadSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the agent itself knows about the machine it speaks for."""

    owner: str
    """The Hub name of the machine's owner; empty: nobody is."""
    drivers: Collection[DriverName]
    os: str | None
    cpu_milli: int | None
    """What all workloads together may hold; None: unknown, so nothing fits."""
    memory_bytes: int | None
    metal_fenced: bool = False
    """Its CPU notebooks were seen to be kept from the Mac's GPU, and may share it."""
    foreign: Collection[str] = ()
    """The devices that programs outside the fleet use, by UUID."""
    closed: Reason | None = None
    """Why its owner lets it take nothing new now; None: it takes work."""


def judge_epoch(
    key: Key, *, newest: int | None, entries: Iterable[Entry]
) -> Explanation | None:
    """Return why an allocation that is not in the ledger may not be opened.

    *newest* is the newest epoch that was ever known of it.
    """
    if newest is not None and newest >= key.epoch:
        return Explanation(
            reason=Reason.EPOCH_STALE, requested=max(key.epoch, 0), capacity=newest
        )
    older = any(
        entry.holds and entry.key.allocation == key.allocation for entry in entries
    )
    if older:
        return Explanation(
            reason=Reason.AGENT_REJECTED,
            detail="an earlier launch of it has not ended yet",
        )
    return None


def judge_launch(
    spec: WorkloadSpec, *, machine: Machine, entries: Iterable[Entry]
) -> Explanation | None:
    """Return why *machine* refuses to run *spec* beside *entries*; None: it may run."""
    held = [
        held_here(
            entry.spec.resources,
            os=machine.os,
            driver=entry.spec.runtime.driver,
            fenced=machine.metal_fenced,
        )
        for entry in entries
        if entry.holds and entry.spec is not None
    ]
    return (
        verify_dispatch(
            spec.runtime,
            kind=spec.kind,
            resources=spec.resources,
            drivers=machine.drivers,
            os=machine.os,
            fenced=machine.metal_fenced,
        )
        or _judge_trust(spec, machine)
        or _judge_terms(machine)
        or device_conflict(spec.resources, held)
        or _judge_devices(spec.resources, machine)
        or _judge_amounts(spec.resources, held, machine)
    )


def _judge_terms(machine: Machine) -> Explanation | None:
    if machine.closed is None:
        return None
    subject = "its owner" if machine.closed is Reason.DRAINING else None
    return Explanation(reason=machine.closed, subject=subject)


def _judge_devices(wanted: Resources, machine: Machine) -> Explanation | None:
    if set(wanted.devices).isdisjoint(machine.foreign):
        return None
    return Explanation(reason=Reason.FOREIGN_PROCESS)


def _judge_trust(spec: WorkloadSpec, machine: Machine) -> Explanation | None:
    principal = Principal(user_id=spec.owner_id, name=spec.owner)
    # Two unknown people are not the same person.
    relation = (
        relation_of(principal, owner=machine.owner) if machine.owner else Relation.GUEST
    )
    # How far the admin and the owner widened the audience is the controller's
    # knowledge; that weak isolation is for the owner alone, nobody can widen.
    return trust_refusal(
        relation,
        spec.runtime.driver,
        policy=TrustPolicy(container=Relation.GUEST, cluster=Relation.GUEST),
        admin_allows=Relation.GUEST,
        owner_allows=Relation.GUEST,
    )


def _judge_amounts(
    wanted: Resources, held: list[Resources], machine: Machine
) -> Explanation | None:
    amounts = (
        (
            Reason.CPU_BUSY,
            "millicores",
            wanted.cpu_milli,
            sum(other.cpu_milli for other in held),
            machine.cpu_milli,
        ),
        (
            Reason.MEMORY_BUSY,
            "bytes",
            wanted.memory_bytes,
            sum(other.memory_bytes for other in held),
            machine.memory_bytes,
        ),
    )
    for reason, unit, requested, taken, capacity in amounts:
        if capacity is None:
            return Explanation(reason=Reason.CAPABILITIES_UNKNOWN, unit=unit)
        if requested + taken > capacity:
            return Explanation(
                reason=reason,
                requested=requested,
                capacity=capacity,
                free=max(capacity - taken, 0),
                unit=unit,
            )
    return None
