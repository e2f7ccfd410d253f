"""Asks the torch of a workload's environment what it can do, in its own process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.tools import Ask, ToolCall
from fleet_agent.probes.torch.reading import read_torch_probe


SCRIPT: Final = str(Path(__file__).with_name("script.py"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchProbe:
    """Reports what torch can do with *interpreter*; unknown when it does not end."""

    ask: Ask
    interpreter: str
    seconds: float = 120.0

    def observe(self) -> Answer:
        """Return what torch says now; never raises."""
        return read_torch_probe(self.ask(self.call()))

    def call(self) -> ToolCall:
        """Return the question.

        Isolated (``-I``): a stray torch.py in some folder must not be taken for torch.
        """
        return ToolCall(
            tool="torch-probe",
            argv=(self.interpreter, "-I", "-W", "ignore", SCRIPT),
            seconds=self.seconds,
            # The order in which nvidia-smi counts.
            environment={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        )
