"""A computer of any shape, as its own tools would describe it.

A simulated machine answers the probes' questions, and nothing else is other than on a
real one: reading, placement and explaining work on what the tools of such a computer
print.  Only an agent that runs nothing for real may have one.
"""

from __future__ import annotations

import json
import uuid
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from fleet_agent.probes.host.probe import HOST, USAGE
from fleet_agent.probes.nvidia.probe import FIELDS
from fleet_agent.probes.readers import ask_machine
from fleet_agent.probes.sandbox import LANDLOCK_TOOL
from fleet_agent.probes.tools import ToolCall, ToolFault, ToolResult
from fleet_contracts.amounts import parse_bytes
from fleet_contracts.base import Contract


Bytes = Annotated[int, BeforeValidator(parse_bytes), Field(gt=0)]

_MIB: Final = 1024**2
_GPU_DRIVER: Final = "550.54.15"
_LOST: Final = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n"
)
_OWN_READINGS: Final = frozenset({"route-readings", "package-readings"})


class SimulatedGpu(Contract):
    """Some NVIDIA GPUs of one kind."""

    name: str
    memory: Bytes
    compute_capability: str = "8.0"
    count: int = Field(default=1, ge=1, le=64)


class MachineShape(Contract):
    """What kind of computer it is."""

    system: Literal["linux", "macos"] = "linux"
    cores: int = Field(ge=1, le=4096)
    memory: Bytes
    disk: Bytes = 1024 * 1024 * _MIB
    chip: str = "Apple M2"
    """Of a Mac, such as ``Apple M2 Ultra``."""
    gpus: tuple[SimulatedGpu, ...] = ()
    gpu_tool: Literal["works", "fails", "hangs"] = "works"
    """What nvidia-smi does: a computer whose GPU driver is broken has it failing."""


class SimulatedMachine:
    """Answers the probes of one agent."""

    def __init__(self, name: str, shape: MachineShape) -> None:
        """Pretend to be *name*, whose GPUs keep their UUIDs."""
        self._name = name
        self._shape = shape

    def __call__(self, call: ToolCall) -> ToolResult:
        """Answer *call* as such a computer would; never raises."""
        if call.tool in _OWN_READINGS:
            return ask_machine(call)
        told = self._told(call)
        if told is None:
            return ToolResult(
                tool=call.tool, argv=call.argv, fault=ToolFault.NOT_FOUND, exit_code=127
            )
        if isinstance(told, ToolResult):
            return told
        return ToolResult(tool=call.tool, argv=call.argv, exit_code=0, stdout=told)

    def _told(self, call: ToolCall) -> str | ToolResult | None:
        if call.tool == HOST:
            return json.dumps(self._host())
        if call.tool == USAGE:
            free = self._shape.memory * 3 // 4
            return json.dumps({"memory_available_bytes": free, "load": 0.1})
        if call.tool == "nvidia-smi" and self._shape.gpus:
            return self._nvidia(call)
        if self._shape.system == "macos":
            return self._mac(call)
        return {
            LANDLOCK_TOOL: json.dumps({"abi": 7}),
            "bubblewrap": "bubblewrap 0.11.0\n",
            "setpriv": "setpriv from util-linux 2.41\n",
        }.get(call.tool)

    def _host(self) -> dict[str, Any]:
        shape = self._shape
        mac = shape.system == "macos"
        return {
            "platform": "darwin" if mac else "linux",
            "machine": "arm64" if mac else "x86_64",
            "release": "24.6.0" if mac else "6.12.0",
            "python": "3.12.0",
            "cores_physical": shape.cores,
            "cores_logical": shape.cores,
            "cores_visible": None if mac else shape.cores,
            "memory_bytes": shape.memory,
            "disk": {"total": shape.disk, "free": shape.disk // 2},
            "gpu_driver_cards": [],
        } | ({"mac_version": "15.6"} if mac else {"os_release": _OS_RELEASE})

    def _mac(self, call: ToolCall) -> str | ToolResult | None:
        if call.tool == "sandbox-exec":
            return ""
        if call.tool == "sysctl":
            return {
                "hw.optional.arm64": "1\n",
                "machdep.cpu.brand_string": f"{self._shape.chip}\n",
                "kern.hv_vmm_present": "0\n",
                "iogpu.wired_limit_mb": "0\n",
            }.get(call.argv[-1]) or ToolResult(
                tool=call.tool,
                argv=call.argv,
                exit_code=1,
                stderr=f"sysctl: unknown oid '{call.argv[-1]}'\n",
            )
        if call.tool == "system_profiler":
            display = {
                "_name": self._shape.chip,
                "sppci_model": self._shape.chip,
                "spdisplays_vendor": "sppci_vendor_Apple",
                "spdisplays_mtlgpufamilysupport": "spdisplays_metal3",
            }
            return json.dumps({"SPDisplaysDataType": [display]})
        return None

    def _nvidia(self, call: ToolCall) -> str | ToolResult | None:
        if self._shape.gpu_tool == "fails":
            return ToolResult(tool=call.tool, argv=call.argv, exit_code=9, stdout=_LOST)
        if self._shape.gpu_tool == "hangs":
            return ToolResult(tool=call.tool, argv=call.argv, timed_out=True)
        asked = next(
            (part for part in call.argv if part.startswith("--query-gpu=")), None
        )
        if asked is None:
            return ""
        names = asked.partition("=")[2].split(",")
        return "".join(
            ", ".join(card[name] for name in names) + "\n" for card in self._cards()
        )

    def _cards(self) -> list[dict[str, str]]:
        kinds = [gpu for gpu in self._shape.gpus for _ in range(gpu.count)]
        return [
            dict(zip(FIELDS, self._card(index, gpu), strict=True))
            for index, gpu in enumerate(kinds)
        ]

    def _card(self, index: int, gpu: SimulatedGpu) -> tuple[str, ...]:
        memory = gpu.memory // _MIB
        own = uuid.uuid5(uuid.NAMESPACE_DNS, f"{index}.{self._name}.invalid")
        place = f"00000000:{index + 1:02X}:00.0"
        known = (str(index), f"GPU-{own}", place, _GPU_DRIVER, str(memory))
        used = ("Disabled", "0", str(memory), "0")
        return (*known, gpu.compute_capability, *used, gpu.name)


_OS_RELEASE: Final = 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n'
