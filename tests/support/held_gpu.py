"""A machine with GPUs that are held, which says how much they compute."""

from __future__ import annotations

from fleet_builders import NOON
from fleet_controller import Fleet
from rich_machine import a_usage
from scheduling_builders import a_catalog, a_gpu, some_facts

from fleet_contracts.capabilities import DeviceUsage, Usage
from fleet_contracts.catalog import Catalog, Relation
from fleet_contracts.protocol import Heartbeat
from fleet_contracts.workloads import DriverName
from fleet_hub.controller import governing
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.settings import Settings


OWNER = Actor(name="alice", role=ActorRole.OWNER)


def an_open_box(
    catalog: Catalog | None = None,
    *,
    gpus: int = 1,
    settings: Settings | None = None,
) -> Fleet:
    """Return a fleet of one machine with GPUs that serves everybody, and is free."""
    fleet = Fleet(catalog=catalog or a_catalog(), settings=settings)
    fleet.machine()
    for set_rule in (governing.set_lending, governing.set_audience):
        set_rule(fleet.core, OWNER, "box", Relation.GUEST)
    give_gpus(fleet, gpus)
    return fleet


def give_gpus(fleet: Fleet, gpus: int = 1) -> None:
    """Let the machine have GPUs: ``GPU-a``, ``GPU-b`` and so on."""
    fleet.core.model.presence["box"].facts = some_facts(
        devices=tuple(a_gpu(f"GPU-{chr(ord('a') + number)}") for number in range(gpus)),
        drivers={DriverName.SIMULATION: True},
    )
    fleet.core.model.stirred.add("box")
    fleet.cycle()


def a_held_gpu(settings: Settings | None = None) -> Fleet:
    """Return a fleet whose one GPU alice holds."""
    fleet = an_open_box(settings=settings)
    record = fleet.ask(profile="lab", class_name="gpu")
    assert record.assignment is not None
    return fleet


def a_gpu_usage(percent: int | None) -> DeviceUsage:
    """Return how much the first GPU computes."""
    [device] = a_usage(NOON).devices
    return device.model_copy(
        update={
            "uuid": "GPU-a",
            "utilisation_percent": percent,
            "memory_used_mib": 5000,
        }
    )


def beat(fleet: Fleet, usage: Usage) -> None:
    """Have the machine's agent send a heartbeat with *usage*."""
    told = usage.model_dump(mode="json")
    fleet.agents["box"].say(Heartbeat(sent_at=fleet.clock.now(), usage=told))


def rests(
    fleet: Fleet, percent: int | None, *, minutes: int, anew: bool = True
) -> None:
    """Let the machine say for this long how much its GPU computes, once a minute."""
    for number in range(minutes + 1):
        told = a_usage(fleet.clock.now() if anew else NOON)
        beat(fleet, told.model_copy(update={"devices": (a_gpu_usage(percent),)}))
        if number < minutes:
            fleet.clock.advance(60)
    fleet.cycle()
