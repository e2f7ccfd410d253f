"""What a few commands say about a host: they name no device, and never deny one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from fleet_agent.probes.answers import Answer, failed
from fleet_agent.probes.faults import process_fault
from fleet_agent.probes.host.cgroups import cpu_quota_milli, memory_limit_bytes
from fleet_agent.probes.host.facts import is_emulated
from fleet_agent.probes.text import known, lines, positive
from fleet_agent.probes.tools import ToolResult
from fleet_contracts.capabilities import ProbeStatus


VISIBILITY: Final = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
    "HSA_OVERRIDE_GFX_VERSION",
)
_SOURCES: Final = re.compile(
    r"nproc|_NPROCESSORS_ONLN|cpu\.max|memory\.max|cpu\.cfs_quota_us|cpu\.cfs_period_us"
    r"|memory\.limit_in_bytes"
)
_TOTAL: Final = re.compile(r"\bsvmem\(total=(\d+)")
_COUNTERS: Final = ("nproc", "_NPROCESSORS_ONLN")
_TWO_NUMBERS: Final = re.compile(r"(max|-?\d+) \d+")


def read_host_tool(result: ToolResult) -> Answer:
    """Judge one reading of a host fact."""
    if result.tool != "environment":
        broken = process_fault(result)
        if broken is not None:
            return broken
    return _READERS[result.tool](result)


def visibility(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that hide devices, as the opaque words that they are."""
    return {
        name: str(value)
        for name, value in environment.items()
        if name in VISIBILITY or name.startswith(("CUDA_", "HIP_", "ROCR_"))
    }


def _environment(result: ToolResult) -> Answer:
    found = visibility(result.env)
    return Answer(
        status=ProbeStatus.OK,
        reason="visibility_env" if found else "ok",
        facts={"visibility": found} if found else {},
    )


def _cgroup(result: ToolResult) -> Answer:
    values = _labelled(result)
    files = {f"/{name}": text for name, text in values.items()}
    facts: dict[str, Any] = {}
    visible = next(
        (positive(values.get(name)) for name in _COUNTERS if name in values), None
    )
    quota = cpu_quota_milli(files)
    limit = memory_limit_bytes(files)
    if visible is not None:
        facts["cpu_visible"] = visible
    if quota is not None:
        effective = quota if visible is None else min(quota, visible * 1000)
        facts["cpu_effective"] = effective / 1000
    elif visible is not None:
        facts["cpu_effective"] = float(visible)
    if limit is not None:
        facts["memory_limit_bytes"] = limit
    if not values:
        return _unread(result)
    reason = "cpu_quota" if quota is not None else "memory_limit" if limit else "ok"
    return Answer(status=ProbeStatus.OK, reason=reason, facts=facts)


def _labelled(result: ToolResult) -> dict[str, str]:
    """Pair the lines with what the command printed, in its order."""
    told = lines(result.stdout)
    names = _SOURCES.findall(" ".join(result.argv))
    if len(names) == len(told):
        return dict(zip(names, told, strict=True))
    # Without a command the form tells: "quota period", or a lone number of cores.
    return {
        "cpu.max" if _TWO_NUMBERS.fullmatch(line) else "nproc": line
        for line in told
        if _TWO_NUMBERS.fullmatch(line) or re.fullmatch(r"\d{1,4}", line)
    }


def _psutil(result: ToolResult) -> Answer:
    # The bare number, or the whole tuple as Python prints it.
    told = _TOTAL.findall(result.stdout) or lines(result.stdout)
    amounts = [amount for text in told if (amount := positive(text))]
    if len(amounts) != 1:
        return _unread(result)
    seen = amounts[0]
    if "cpu_count" in " ".join(result.argv):
        return Answer(status=ProbeStatus.OK, facts={"cpu_visible": seen})
    limit = result.context.get("memory_limit_bytes")
    binding = isinstance(limit, int) and 0 < limit < seen
    return Answer(
        status=ProbeStatus.OK,
        reason="memory_limit_ignored" if binding else "ok",
        facts={
            "memory_visible_bytes": seen,
            "memory_effective_bytes": limit if binding else seen,
        },
    )


def _unread(result: ToolResult) -> Answer:
    """Judge an output that holds nothing we know."""
    if result.exit_code not in (None, 0):
        return failed(ProbeStatus.TOOL_ERROR, "tool_failed")
    told = bool(result.stdout.strip())
    return failed(ProbeStatus.UNPARSEABLE, "not_understood" if told else "empty_output")


def _cpuinfo(result: ToolResult) -> Answer:
    told = lines(result.stdout)
    named = [
        match[1]
        for line in told
        if (match := re.match(r"(?:model name|Model name|Processor)\s*: *(.+)", line))
    ]
    name = known(named[0] if named else told[0] if len(told) == 1 else None)
    if name is None:
        return _unread(result)
    emulated = is_emulated(name)
    return Answer(
        status=ProbeStatus.OK,
        reason="emulated_cpu" if emulated else "ok",
        facts={"cpu_name": name[:200], "cpu_emulated": emulated},
    )


_READERS: Final[dict[str, Callable[[ToolResult], Answer]]] = {
    "environment": _environment,
    "cgroup": _cgroup,
    "psutil": _psutil,
    "cpuinfo": _cpuinfo,
}
TOOLS: Final = frozenset(_READERS)
