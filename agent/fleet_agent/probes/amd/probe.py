"""Asks the AMD tools for presence: amd-smi first, rocm-smi when it is not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fleet_agent.probes.amd.reading import read_amd_tool
from fleet_agent.probes.answers import Answer, with_witness
from fleet_agent.probes.tools import Ask, ToolCall
from fleet_contracts.capabilities import ProbeStatus


_AMD_SMI: Final = (
    ("amd-smi", "static", "--asic", "--vram", "--bus", "--driver", "--json"),
    # Some releases fail as a whole when the driver's version cannot be read.
    ("amd-smi", "static", "--asic", "--vram", "--bus", "--json"),
)
_ROCM_SMI: Final = (
    "rocm-smi",
    "--showproductname",
    "--showmeminfo",
    "vram",
    "--showdriverversion",
    "--json",
)
_SECONDS: Final = {"amd-smi": 30.0, "rocm-smi": 15.0}
_DONE: Final = (ProbeStatus.OK, ProbeStatus.OK_WITH_WARNINGS, ProbeStatus.NO_DEVICES)


@dataclass(frozen=True, slots=True, kw_only=True)
class AmdProbe:
    """Reports AMD devices: detection only, nothing is placed on them."""

    ask: Ask
    files: tuple[str, ...] = ()
    """By which the kernel offers AMD cards: without a tool those are unknown."""

    def observe(self) -> tuple[str, Answer]:
        """Return which tool spoke, and what it said; never raises."""
        tool, answer = self._observe()
        return tool, with_witness(answer, self.files)

    def _observe(self) -> tuple[str, Answer]:
        answer: Answer | None = None
        for argv in _AMD_SMI:
            answer = self._run(argv)
            if answer.status in _DONE:
                return "amd-smi", answer
            if answer.status in (ProbeStatus.TOOL_ABSENT, ProbeStatus.TIMEOUT):
                break
        second = self._run(_ROCM_SMI)
        if answer is None or answer.status is ProbeStatus.TOOL_ABSENT:
            return "rocm-smi", second
        return ("rocm-smi", second) if second.status in _DONE else ("amd-smi", answer)

    def _run(self, argv: tuple[str, ...]) -> Answer:
        tool = argv[0]
        call = ToolCall(
            tool=tool,
            argv=argv,
            seconds=_SECONDS[tool],
            places=(f"/opt/rocm/bin/{tool}", f"/usr/bin/{tool}"),
        )
        return read_amd_tool(self.ask(call))
