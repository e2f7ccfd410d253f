"""An agent gives no device twice and nothing without its devices, whoever tells it to.

Real agents on pretended machines: a Mac, and a box whose GPUs nobody has seen yet.
"""

from __future__ import annotations

from typing import Any

import pytest
from agent_process import AgentProcess
from agent_support import a_runtime, a_spec
from controller_peer import ControllerPeer

from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import Accelerator, Resources, WorkloadSpec


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

MAC = {"system": "macos", "cores": 8, "memory": "16G"}
BOX = {
    "cores": 8,
    "memory": "16G",
    "gpus": [{"name": "NVIDIA A100", "memory": "40G", "count": 2}],
}
METAL = Resources(cpu_milli=100, memory_bytes=64 * 1024**2, metal=True)
KINDS = (Accelerator.MPS, Accelerator.CPU)


def a_metal_spec(accelerator: Accelerator = Accelerator.MPS) -> WorkloadSpec:
    """Return a notebook that holds the Mac's GPU, asked for or not."""
    return a_spec(resources=METAL, runtime=a_runtime(accelerator=accelerator))


async def a_known_machine(
    peer: ControllerPeer, agent: AgentProcess, shape: dict[str, Any], nth: int = 1
) -> dict[str, Any]:
    """Start *agent* as such a machine; return what it says of itself once it knows."""
    agent.settings["simulated_machine"] = shape
    agent.start()
    await peer.greeted(nth)
    told: dict[str, Any] = await peer.until(lambda: _settled(peer))
    return told


def _settled(peer: ControllerPeer) -> dict[str, Any] | None:
    pictures = [
        told
        for message in [*peer.hellos, *peer.heard]
        if (told := getattr(message, "capabilities", None)) and told["settled"]
    ]
    return pictures[-1] if pictures else None


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
async def test_a_second_holder_of_the_macs_gpu_is_refused_even_if_told_to_start(
    peer: ControllerPeer, agent: AgentProcess, first: Accelerator, second: Accelerator
) -> None:
    """Both kinds in either order: by the Mac itself, and also after its agent died."""
    await a_known_machine(peer, agent, MAC)
    peer.launch("w1-1", 1, a_metal_spec(first))
    await peer.report("w1-1", AgentEvent.SERVING)
    peer.launch("w2-2", 2, a_metal_spec(second))
    refused = await peer.report("w2-2", AgentEvent.REJECTED)
    assert refused.explanation is not None
    assert refused.explanation.reason is Reason.METAL_BUSY
    assert len(agent.workloads()) == 1

    await agent.kill()
    agent.start()
    await peer.greeted(2)
    peer.launch("w3-3", 3, a_metal_spec(second))
    refused = await peer.report("w3-3", AgentEvent.REJECTED)
    assert refused.explanation is not None
    assert refused.explanation.reason is Reason.METAL_BUSY
    assert len(agent.workloads()) == 1

    peer.stop("w1-1", 1)
    await peer.report("w1-1", AgentEvent.ENDED)
    peer.launch("w4-4", 4, a_metal_spec(second))
    await peer.report("w4-4", AgentEvent.SERVING)
    assert len(agent.workloads()) == 1


async def test_one_that_is_being_prepared_or_stopped_holds_the_macs_gpu(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """From the Mac's yes on, and until its end is confirmed."""
    agent.settings["simulation"] = {"fault": "prepare_hangs"}
    await a_known_machine(peer, agent, MAC)
    peer.launch("w1-1", 1, a_metal_spec())
    await peer.report("w1-1", AgentEvent.ACCEPTED)
    peer.launch("w2-2", 2, a_metal_spec())
    refused = await peer.report("w2-2", AgentEvent.REJECTED)
    assert refused.explanation is not None
    assert refused.explanation.reason is Reason.METAL_BUSY
    await agent.kill()

    agent.settings["simulation"] = {"fault": "server_ignores_stop"}
    agent.start()
    await peer.greeted(2)
    peer.launch("w1-1", 1, a_metal_spec())
    await peer.report("w1-1", AgentEvent.SERVING)
    peer.stop("w1-1", 1)
    await peer.report("w1-1", AgentEvent.STOPPING)
    peer.launch("w3-3", 3, a_metal_spec())
    refused = await peer.report("w3-3", AgentEvent.REJECTED)
    assert refused.explanation is not None
    assert refused.explanation.reason is Reason.METAL_BUSY
    await peer.report("w1-1", AgentEvent.ENDED)


async def test_two_launches_at_once_leave_one_holder(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Ten that come in one breath, from a controller that is out of its mind."""
    await a_known_machine(peer, agent, MAC)
    for number in range(1, 11):
        peer.launch(f"w{number}-{number}", number, a_metal_spec())
    await peer.until(
        lambda: (
            sum(
                report.event in {AgentEvent.REJECTED, AgentEvent.SERVING}
                for report in peer.reports()
            )
            == 10
        )
    )
    events = [report.event for report in peer.reports()]
    assert events.count(AgentEvent.SERVING) == 1
    assert events.count(AgentEvent.REJECTED) == 9
    assert len(agent.workloads()) == 1


async def test_a_gpu_that_one_holds_is_refused_to_another(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """By UUID: the other one of the box is free for it."""
    told = await a_known_machine(peer, agent, BOX)
    one, two = (device["uuid"] for device in told["accelerators"])
    runtime = a_runtime(accelerator=Accelerator.CUDA)
    for allocation, epoch, device, event in (
        ("w1-1", 1, one, AgentEvent.SERVING),
        ("w2-2", 2, one, AgentEvent.REJECTED),
        ("w3-3", 3, two, AgentEvent.SERVING),
    ):
        resources = Resources(cpu_milli=100, devices=(device,))
        peer.launch(allocation, epoch, a_spec(resources=resources, runtime=runtime))
        report = await peer.report(allocation, event)
        if event is AgentEvent.REJECTED:
            assert report.explanation is not None
            assert report.explanation.reason is Reason.GPU_BUSY


@pytest.mark.parametrize("gpu_tool", ["works", "fails", "hangs"])
async def test_an_agent_that_starts_anew_gives_no_held_gpu_before_it_has_looked(
    peer: ControllerPeer, agent: AgentProcess, gpu_tool: str
) -> None:
    """What its probes do not say yet, or never will, its own ledger knows.

    The notebook that computes runs on with its GPU, and nobody else is given that.
    """
    told = await a_known_machine(peer, agent, BOX)
    one, _ = (device["uuid"] for device in told["accelerators"])
    spec = a_spec(
        resources=Resources(cpu_milli=100, devices=(one,)),
        runtime=a_runtime(accelerator=Accelerator.CUDA),
    )
    peer.launch("w1-1", 1, spec)
    await peer.report("w1-1", AgentEvent.SERVING)
    before = agent.workloads()

    await agent.kill()
    agent.settings["simulated_machine"] = BOX | {"gpu_tool": gpu_tool}
    agent.start()
    await peer.greeted(2)
    # Told again and told otherwise in the same breath as it is back.
    peer.launch("w1-1", 1, spec)
    peer.launch("w2-2", 2, spec)
    refused = await peer.report("w2-2", AgentEvent.REJECTED)
    assert refused.explanation is not None
    assert refused.explanation.reason is Reason.GPU_BUSY
    assert agent.workloads() == before
    (item,) = (it for it in peer.inventories[1] if it.allocation == "w1-1")
    assert item.event is AgentEvent.SERVING
