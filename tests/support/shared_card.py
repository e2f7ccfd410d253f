"""A fleet in which two machines name the same card: one computer with two agents."""

from __future__ import annotations

from typing import Any

from fake_agent import some_capabilities
from fleet_controller import Fleet, allocation_of
from scheduling_builders import a_catalog

from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    Fact,
    WorkerCapabilities,
)
from fleet_contracts.protocol import AgentEvent
from fleet_hub.controller import stopping
from fleet_hub.controller.records import Workload


def a_picture(*uuids: str, system: str = "linux") -> dict[str, Any]:
    """Return what a machine with these cards says of itself."""
    told = WorkerCapabilities.model_validate(some_capabilities())
    cards = tuple(
        AcceleratorDevice(
            accelerator=DeviceKind.CUDA,
            vendor="nvidia",
            uuid=uuid,
            memory_mib=81_920,
            compute_capability="8.0",
            healthy=True,
            execution_supported=True,
        )
        for uuid in uuids
    )
    host = told.host.model_copy(update={"os": Fact(value=system)})
    return told.model_copy(update={"accelerators": cards, "host": host}).model_dump(
        mode="json"
    )


def two_agents(first: str = "box", second: str = "again") -> Fleet:
    """Return a fleet in which two machines name the same card."""
    fleet = Fleet(catalog=a_catalog())
    for name in (first, second):
        fleet.machine(name, capabilities=a_picture("GPU-a"))
        fleet.clock.advance(1)
    return fleet


def asked(fleet: Fleet, number: int, class_name: str = "gpu") -> Workload:
    """Ask for a GPU."""
    return fleet.ask(
        number, profile="lab", class_name=class_name, attempt=f"try-{number}"
    )


def machine_of(fleet: Fleet, record: Workload) -> str | None:
    """Return where a workload was put."""
    assignment = fleet.get(record).assignment
    return None if assignment is None else assignment.machine


def end(fleet: Fleet, record: Workload) -> None:
    """Stop what runs, and hear that it is gone."""
    allocation, machine = allocation_of(fleet.get(record)), machine_of(fleet, record)
    stopping.stop(fleet.core, fleet.get(record))
    fleet.agents[machine or ""].report(allocation, AgentEvent.ENDED)
    fleet.cycle()
