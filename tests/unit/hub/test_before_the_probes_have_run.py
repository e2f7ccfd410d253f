"""Nothing starts without its devices on a machine whose probes have not run yet."""

from __future__ import annotations

from typing import Any

import pytest
from controller_catalogs import offering
from fake_agent import FakeAgent, some_capabilities as a_picture
from fleet_builders import NOON
from fleet_controller import Fleet, allocation_of
from scheduling_builders import a_class, a_gpu_class

from fleet_contracts.allocations import State
from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceKind,
    Observed,
    ProbeReport,
    ProbeStatus,
    WorkerCapabilities,
)
from fleet_contracts.protocol import AgentEvent, CapabilitiesChanged, Heartbeat
from fleet_contracts.reasons import Reason
from fleet_contracts.sentences import sentence
from fleet_hub.controller import stopping


OBSERVED = Observed(source="test", observed_at=NOON)
CATALOG = offering(a_gpu_class(), a_class())


def known(*uuids: str, settled: bool = True) -> dict[str, Any]:
    """Return what a machine with these GPUs says; unsettled, its probes still run."""
    told = WorkerCapabilities.model_validate(a_picture(cores=8))
    devices = tuple(
        AcceleratorDevice(
            accelerator=DeviceKind.CUDA,
            vendor="NVIDIA",
            uuid=uuid,
            execution_supported=True,
            healthy=True,
            observed=OBSERVED,
        )
        for uuid in uuids
    )
    return told.model_copy(
        update={"accelerators": devices, "settled": settled}
    ).model_dump(mode="json")


def failing(reason: str) -> dict[str, Any]:
    """Return what a machine says whose nvidia-smi is there and fails."""
    report = ProbeReport(
        probe="nvidia",
        status=ProbeStatus.TOOL_ERROR,
        reason=reason,
        devices_complete=False,
        observed=Observed(source="nvidia-smi", observed_at=NOON),
    )
    return known() | {"probes": [report.model_dump(mode="json")]}


NOTHING_YET = known(settled=False)
"""The host is known, and whether it has GPUs is not."""


def a_box(*uuids: str) -> tuple[Fleet, FakeAgent]:
    """Return a fleet of one machine with these GPUs."""
    fleet = Fleet(catalog=CATALOG)
    return fleet, fleet.machine("box", capabilities=known(*uuids))


def restarts(fleet: Fleet, agent: FakeAgent) -> None:
    """Let the agent start anew: it says hello before its probes have run."""
    agent.disconnect()
    agent.capabilities = NOTHING_YET
    agent.connect()
    agent.say(Heartbeat(sent_at=fleet.clock.now()))
    fleet.cycle()


def tells(fleet: Fleet, agent: FakeAgent, picture: dict[str, Any]) -> None:
    """Let the agent say what its probes found."""
    agent.say(CapabilitiesChanged(capabilities=picture))
    fleet.cycle()


def test_a_gpu_notebook_waits_for_the_probes_and_starts_with_its_gpu() -> None:
    """Not as CPU work, not without a device: the reason says what is not known yet."""
    fleet, agent = a_box()
    tells(fleet, agent, NOTHING_YET)
    record = fleet.ask(1, class_name="gpu")
    assert record.state is State.QUEUED
    assert record.explanation is not None
    assert record.explanation.reason is Reason.CAPABILITIES_UNKNOWN
    assert agent.launched == {}
    tells(fleet, agent, known("GPU-a"))
    spec = agent.launched[allocation_of(fleet.get(record))].spec
    assert spec.resources.devices == ("GPU-a",)


def test_what_runs_keeps_its_gpu_through_a_restart_of_its_agent() -> None:
    """Before the probes have run nobody is given it, nor any other; then the other."""
    fleet, agent = a_box("GPU-a", "GPU-b")
    first = fleet.ask(1, class_name="gpu")
    agent.serve(allocation_of(first))
    held = agent.launched[allocation_of(first)].spec.resources.devices
    restarts(fleet, agent)
    second = fleet.ask(2, class_name="gpu")
    assert second.state is State.QUEUED
    assert fleet.get(first).state is State.READY
    tells(fleet, agent, known("GPU-a", "GPU-b"))
    given = agent.launched[allocation_of(fleet.get(second))].spec.resources.devices
    assert set(held) | set(given) == {"GPU-a", "GPU-b"}


def test_a_restart_of_the_same_notebook_waits_for_the_probes_too() -> None:
    """It goes back to its machine, and starts there with a GPU or not at all."""
    fleet, agent = a_box("GPU-a")
    first = fleet.ask(1, class_name="gpu")
    agent.serve(allocation_of(first))
    _stop(fleet, agent, allocation_of(first))
    restarts(fleet, agent)
    again = fleet.ask(1, class_name="gpu", attempt="second")
    assert again.state is State.QUEUED
    assert len(agent.launched) == 1
    tells(fleet, agent, known("GPU-a"))
    spec = agent.launched[allocation_of(fleet.get(again))].spec
    assert spec.resources.devices == ("GPU-a",)


def test_a_launch_that_the_agent_missed_is_told_again_with_the_same_gpu() -> None:
    """It was placed before: the order that follows names what the first one named."""
    fleet, agent = a_box("GPU-a", "GPU-b")
    record = fleet.ask(1, class_name="gpu")
    allocation = allocation_of(record)
    (device,) = agent.launched[allocation].spec.resources.devices
    agent.disconnect()
    assert allocation not in agent.launched, "the link broke before it was read"
    restarts(fleet, agent)
    assert agent.launched[allocation].spec.resources.devices == (device,)


@pytest.mark.parametrize("uuids", [(), ("GPU-b",)])
def test_a_gpu_that_the_probes_do_not_find_any_more_is_not_replaced_by_none(
    uuids: tuple[str, ...],
) -> None:
    """The next start gets what is there, or is told that nothing is: never no device."""
    fleet, agent = a_box("GPU-a")
    restarts(fleet, agent)
    record = fleet.ask(1, class_name="gpu")
    tells(fleet, agent, known(*uuids))
    now = fleet.get(record)
    if uuids:
        spec = agent.launched[allocation_of(now)].spec
        assert spec.resources.devices == uuids
        return
    assert now.assignment is None
    assert agent.launched == {}


def test_a_tool_that_fails_after_a_restart_of_its_agent_refuses_nobody() -> None:
    """The machine had a GPU before: whoever asks for one waits until it is named again."""
    fleet, agent = a_box("GPU-a")
    restarts(fleet, agent)
    tells(fleet, agent, failing("nvml_driver_library_mismatch"))
    record = fleet.ask(1, class_name="gpu")
    assert record.state is State.QUEUED
    assert record.explanation is not None
    assert sentence(record.explanation) == (
        "On box, it has not told what it can do: cuda "
        "(nvidia-smi: nvml driver library mismatch)."
    )
    tells(fleet, agent, known("GPU-a"))
    spec = agent.launched[allocation_of(fleet.get(record))].spec
    assert spec.resources.devices == ("GPU-a",)


def test_probes_that_never_answer_start_nothing_that_needs_a_gpu() -> None:
    """Days later it still waits; CPU work beside it has started long ago."""
    fleet, agent = a_box()
    tells(fleet, agent, NOTHING_YET)
    gpu = fleet.ask(1, class_name="gpu")
    cpu = fleet.ask(2, class_name="cpu")
    for _ in range(3):
        fleet.clock.advance(24 * 3600)
        agent.say(Heartbeat(sent_at=fleet.clock.now()))
        fleet.cycle()
    assert fleet.get(cpu).assignment is not None
    assert fleet.get(gpu).state is State.QUEUED


def _stop(fleet: Fleet, agent: FakeAgent, allocation: str) -> None:
    (record,) = fleet.core.model.workloads.values()
    stopping.stop(fleet.core, record)
    agent.report(allocation, AgentEvent.ENDED)
    fleet.cycle()
