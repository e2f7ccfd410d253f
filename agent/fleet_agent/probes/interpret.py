"""Judges any recorded run of any tool that the probes know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fleet_agent.probes.amd.reading import read_amd_tool
from fleet_agent.probes.answers import Answer, failed
from fleet_agent.probes.apple.devices import Mac, metal_device
from fleet_agent.probes.apple.reading import TOOLS as APPLE_TOOLS, read_apple_tool
from fleet_agent.probes.host.reading import TOOLS as HOST_TOOLS, read_host_tool
from fleet_agent.probes.nvidia.reading import read_nvidia_smi
from fleet_agent.probes.tools import ToolResult
from fleet_agent.probes.torch.reading import read_torch_probe
from fleet_contracts.capabilities import DeviceKind, ProbeStatus


READERS: Final[dict[str, Callable[[ToolResult], Answer]]] = {
    "nvidia-smi": read_nvidia_smi,
    "rocm-smi": read_amd_tool,
    "amd-smi": read_amd_tool,
    "torch-probe": read_torch_probe,
    **dict.fromkeys(APPLE_TOOLS, read_apple_tool),
    **dict.fromkeys(HOST_TOOLS, read_host_tool),
}


def interpret(result: ToolResult) -> Answer:
    """Return the conclusion from one run; never raises, whatever the bytes."""
    reader = READERS.get(result.tool)
    if reader is None:
        return failed(ProbeStatus.UNPARSEABLE, "tool_unknown")
    return _with_metal(reader(result), result)


def _with_metal(answer: Answer, result: ToolResult) -> Answer:
    """An Apple Silicon Mac has its Metal GPU, whichever tool was asked."""
    mac = Mac.from_context(result.context)
    if not mac.apple_silicon or mac.os not in (None, "darwin"):
        return answer
    if any(device.accelerator is DeviceKind.MPS for device in answer.devices):
        return answer
    return replace(answer, devices=(*answer.devices, metal_device(mac)))
