"""Puts what torch said into an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.text import lines, shortened
from fleet_agent.probes.tools import ToolResult
from fleet_contracts.capabilities import ProbeStatus, TorchFacts


def answering(
    status: ProbeStatus,
    reason: str,
    torch: Mapping[str, Any],
    result: ToolResult,
    **more: Any,
) -> Answer:
    """Return an answer about *torch*; the complaints are kept unless all is well."""
    told = tuple(shortened(line) for line in lines(result.stderr)[:20])
    return Answer(
        status=status,
        reason=reason,
        torch=TorchFacts(status=status, reason=reason, **torch),
        warnings=() if status is ProbeStatus.OK else told,
        **more,
    )
