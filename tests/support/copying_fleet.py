"""A fleet in which alice's files are on one machine, and what she wants next on another."""

from __future__ import annotations

from fleet_controller import Fleet, allocation_of
from scheduling_builders import a_catalog, a_gpu, some_facts

from fleet_contracts.catalog import Catalog
from fleet_contracts.protocol import COPYING_PROTOCOL, AgentEvent
from fleet_contracts.workloads import Choice
from fleet_hub.controller import exporting
from fleet_hub.controller.records import Workload
from fleet_hub.controller.settings import Settings
from fleet_hub.explaining.answers import answer
from fleet_hub.explaining.document import Answer, Question


OLD = COPYING_PROTOCOL - 1
"""What an agent speaks that cannot copy."""


def a_fleet(catalog: Catalog | None = None, **settings: int) -> tuple[Fleet, Workload]:
    """Return a CPU box with alice's files, a GPU box, and her stopped server."""
    fleet = Fleet(catalog=catalog or a_catalog(), settings=Settings(**settings))
    home = fleet.machine("cpu-box")
    record = fleet.ask(profile="lab", class_name="cpu")
    home.serve(allocation_of(record))
    home.report(allocation_of(record), AgentEvent.ENDED)
    fleet.machine("gpu-box")
    gives_a_gpu(fleet)
    return fleet, fleet.get(record)


def gives_a_gpu(fleet: Fleet, machine: str = "gpu-box") -> None:
    """Let *machine* have a GPU."""
    fleet.core.model.presence[machine].facts = some_facts(devices=(a_gpu(),))
    fleet.core.model.stirred.add(machine)
    fleet.cycle()


def speaks(fleet: Fleet, machine: str, protocol: int) -> None:
    """Let the agent of *machine* dial again with another version."""
    fleet.agents[machine].disconnect()
    fleet.agents[machine].connect(protocol=protocol)
    if machine == "gpu-box":
        gives_a_gpu(fleet)
    fleet.cycle()


def choose(
    fleet: Fleet, class_name: str = "gpu", files: str | None = "copy"
) -> Workload:
    """Ask for the same server again, with this class and this wish for its files."""
    choice = {"profile": "lab", "class": class_name, "files": files}
    return fleet.ask(
        attempt=f"{class_name}-{files}", choice=Choice.model_validate(choice)
    )


def explained(fleet: Fleet, record: Workload) -> Answer:
    """Return what is explained about *record*."""
    return answer(exporting.view_of(fleet.core), Question(workload=record.id))
