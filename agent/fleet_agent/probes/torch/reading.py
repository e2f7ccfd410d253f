"""What one run of a torch probe says.  It never speaks about hardware."""

from __future__ import annotations

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.faults import process_fault
from fleet_agent.probes.tools import ToolResult
from fleet_agent.probes.torch.prose_reading import read_broken_probe, read_other_probe
from fleet_agent.probes.torch.stages import read_steps
from fleet_agent.probes.torch.step_reading import read_own_steps


def read_torch_probe(result: ToolResult) -> Answer:
    """Judge one run: a crash or hang keeps the steps that came out before it."""
    steps = read_steps(result.stdout)
    broken = process_fault(result)
    if steps is not None:
        return read_own_steps(steps, result, broken)
    if broken is not None:
        return read_broken_probe(result, broken)
    return read_other_probe(result)
