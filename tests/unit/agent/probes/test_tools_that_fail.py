"""A tool that fails says nothing: what it would have named is unknown, and not absent.

Only a tool that is not there, on a machine whose kernel offers no cards, means none.
"""

from __future__ import annotations

from typing import Any

import pytest
from probe_machines import LINUX, MAC, a_pretend_machine, settings_for

from fleet_agent.probes.detect import detect
from fleet_agent.probes.tools import ToolCall, ToolFault, ToolResult
from fleet_contracts.capabilities import DeviceKind
from fleet_contracts.placement_facts import placement_facts


pytestmark = pytest.mark.asyncio

RUBBISH = "\x00\ufffd{[ 12%% nothing that anybody knows\n"


@pytest.mark.parametrize(
    ("tool", "kind"), [("nvidia_smi", DeviceKind.CUDA), ("rocm_smi", DeviceKind.ROCM)]
)
@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ({"exit_code": 9, "stdout": "NVIDIA-SMI has failed\n"}, "tool failed"),
        ({"timed_out": True}, "tool timeout"),
        ({"exit_code": -11}, "killed by sigsegv"),
        ({"fault": ToolFault.NOT_EXECUTABLE}, "tool not executable"),
        ({"exit_code": 0, "stdout": RUBBISH}, "not understood"),
        ({"exit_code": 0, "stdout": ""}, "empty output"),
    ],
)
async def test_a_tool_that_is_there_and_does_not_answer_leaves_its_devices_unknown(
    tool: str, kind: DeviceKind, reply: dict[str, Any], why: str
) -> None:
    """It is told with its reason; the same tool, absent, means that there are none."""
    name = tool.replace("_", "-")
    machine = a_pretend_machine(**{tool: ToolResult(tool=name, **reply)})
    facts = placement_facts(await detect(settings_for(machine)))

    assert facts.settled
    assert facts.unlisted == {kind: f"{name}: {why}"}
    absent = await detect(settings_for(a_pretend_machine()))
    assert placement_facts(absent).unlisted == {}


@pytest.mark.parametrize(
    ("readings", "unlisted"),
    [
        ({"gpu_device_files": ["nvidia0"]}, {DeviceKind.CUDA}),
        ({"gpu_driver_cards": ["0000:01:00.0"]}, {DeviceKind.CUDA}),
        ({"gpu_device_files": ["kfd"]}, {DeviceKind.ROCM}),
        ({"gpu_device_files": None}, set()),
    ],
)
async def test_cards_that_the_kernel_offers_are_not_nothing_without_their_tool(
    readings: dict[str, Any], unlisted: set[DeviceKind]
) -> None:
    """They make no device, and what they are is unknown until a tool names them."""
    picture = await detect(settings_for(a_pretend_machine(LINUX | readings)))

    assert picture.accelerators == ()
    facts = placement_facts(picture)
    assert set(facts.unlisted) == unlisted
    assert all(why.endswith(": tool missing") for why in facts.unlisted.values())


async def test_a_card_that_cannot_be_initialised_is_not_nothing() -> None:
    """nvidia-smi then finds no devices, and the kernel's driver still has the card."""
    none_found = ToolResult(
        tool="nvidia-smi", exit_code=6, stdout="No devices were found\n"
    )
    cards = {"gpu_driver_cards": ["0000:01:00.0"]}
    broken = await detect(
        settings_for(a_pretend_machine(LINUX | cards, nvidia_smi=none_found))
    )
    without = await detect(settings_for(a_pretend_machine(nvidia_smi=none_found)))

    assert placement_facts(broken).unlisted == {
        DeviceKind.CUDA: "nvidia-smi: cards not found"
    }
    assert placement_facts(without).unlisted == {}


@pytest.mark.parametrize(
    ("brand", "metal"), [("Apple M2", True), ("Intel(R) Core(TM) i9", False)]
)
async def test_whether_a_mac_has_metal_does_not_depend_on_a_tool_that_fails(
    brand: str, *, metal: bool
) -> None:
    """Its chip says so: system_profiler only tells what the GPU is called."""

    def sysctl(call: ToolCall) -> ToolResult:
        told = {"machdep.cpu.brand_string": brand}.get(call.argv[-1])
        code = 0 if told else 1
        return ToolResult(
            tool=call.tool, argv=call.argv, exit_code=code, stdout=told or ""
        )

    host = MAC | {"machine": "arm64" if metal else "x86_64"}
    fails = ToolResult(tool="system_profiler", exit_code=1, stderr="failed\n")
    machine = a_pretend_machine(host, sysctl=sysctl, system_profiler=fails)
    picture = await detect(settings_for(machine))

    facts = placement_facts(picture)
    kinds = {device.accelerator for device in facts.devices}
    assert kinds == ({DeviceKind.MPS} if metal else set())
    assert facts.unlisted == {}
