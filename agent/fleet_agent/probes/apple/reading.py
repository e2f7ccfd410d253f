"""What one run of a macOS tool says about the Mac's GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.apple.devices import Mac, chip, foreign_device, metal_device
from fleet_agent.probes.apple.displays import Display, read_json, read_text
from fleet_agent.probes.apple.keys import ioreg_values, sysctl_values, uname_facts
from fleet_agent.probes.faults import process_fault
from fleet_agent.probes.text import lines, positive, shortened
from fleet_agent.probes.tools import ToolResult
from fleet_contracts.capabilities import AcceleratorDevice, ProbeStatus


_MIB: Final = 1024 * 1024


def read_apple_tool(result: ToolResult) -> Answer:
    """Judge one run of system_profiler, sysctl, ioreg or uname."""
    mac = Mac.from_context(result.context)
    broken = process_fault(result)
    if broken is not None:
        return _answer(mac, broken.status, broken.reason)
    return _READERS[result.tool](result, mac)


def _answer(
    mac: Mac,
    status: ProbeStatus,
    reason: str,
    *,
    name: str | None = None,
    memory_mib: int | None = None,
    others: tuple[AcceleratorDevice, ...] = (),
    listed: bool = False,
    warnings: tuple[str, ...] = (),
    facts: dict[str, Any] | None = None,
) -> Answer:
    devices = others
    if mac.apple_silicon and mac.os in (None, "darwin"):
        devices = (metal_device(mac, name=name, memory_mib=memory_mib),)
        listed = True
    return Answer(
        status=status,
        reason=reason,
        devices=devices,
        devices_complete=listed,
        warnings=warnings,
        facts=facts or {},
    )


def _displays(result: ToolResult, mac: Mac) -> Answer:
    read = read_json(result.stdout)
    read = read_text(result.stdout) if read is None else read
    warnings = tuple(shortened(line) for line in lines(result.stderr)[:20])
    if not read:
        return _no_displays(result, mac, warnings, entries=read is not None)
    own = next((display for display in read if display.vendor == "apple"), None)
    virtual = any(display.paravirtual for display in read)
    mac = mac.told(apple_silicon=own is not None, virtual=virtual)
    facts: dict[str, Any] = {}
    if own and own.cores:
        facts["gpu_cores"] = own.cores
    if mac.virtual:
        facts["virtual_machine"] = True
    status = ProbeStatus.OK_WITH_WARNINGS if warnings else ProbeStatus.OK
    reason = "virtual_gpu" if mac.virtual else "foreign_lines" if warnings else "ok"
    return _answer(
        mac,
        status,
        reason,
        name=own.name if own else None,
        others=tuple(_foreign(index, display) for index, display in enumerate(read)),
        listed=True,
        warnings=warnings,
        facts=facts,
    )


def _no_displays(
    result: ToolResult, mac: Mac, warnings: tuple[str, ...], *, entries: bool
) -> Answer:
    if entries:
        return _answer(mac, ProbeStatus.PARTIAL, "no_entries", warnings=warnings)
    if result.exit_code not in (None, 0):
        return _answer(mac, ProbeStatus.TOOL_ERROR, "tool_failed", warnings=warnings)
    told = bool(result.stdout.strip())
    reason = "not_understood" if told else "empty_output"
    return _answer(mac, ProbeStatus.UNPARSEABLE, reason, warnings=warnings)


def _foreign(index: int, display: Display) -> AcceleratorDevice:
    return foreign_device(
        index, vendor=display.vendor, name=display.name, memory_mib=display.memory_mib
    )


def _sysctl(result: ToolResult, mac: Mac) -> Answer:
    values, missing = sysctl_values(result.argv, result.stdout, result.stderr)
    brand = values.get("machdep.cpu.brand_string")
    arm = values.get("hw.optional.arm64")
    virtual = values.get("kern.hv_vmm_present") == "1" or "(Virtual)" in (brand or "")
    # Only Apple Silicon translates: a process under Rosetta runs on nothing else.
    translated = values.get("sysctl.proc_translated") == "1"
    own = arm == "1" or translated or (brand or "").startswith("Apple ")
    apple = True if own else None
    mac = mac.told(apple_silicon=apple, virtual=virtual)
    limit = positive(values.get("iogpu.wired_limit_mb"))
    if missing:
        status, reason = ProbeStatus.PARTIAL, "unknown_oid"
    elif not values:
        told = bool(result.text.strip())
        status = ProbeStatus.UNPARSEABLE
        reason = "not_understood" if told else "empty_output"
        if result.exit_code not in (None, 0):
            status, reason = ProbeStatus.TOOL_ERROR, "tool_failed"
    else:
        status, reason = ProbeStatus.OK, "virtual_machine" if mac.virtual else "ok"
    name = None if mac.virtual else chip(brand)
    facts = _sysctl_facts(values, virtual=bool(mac.virtual))
    return _answer(mac, status, reason, name=name, memory_mib=limit, facts=facts)


_COUNTS: Final = {
    "hw.physicalcpu": "cpu_physical",
    "machdep.cpu.core_count": "cpu_physical",
    "hw.logicalcpu": "cpu_logical",
    "hw.ncpu": "cpu_logical",
    "machdep.cpu.thread_count": "cpu_logical",
}


def _sysctl_facts(values: dict[str, str], *, virtual: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"virtual_machine": True} if virtual else {}
    for key, name in _COUNTS.items():
        count = positive(values.get(key))
        if count is not None:
            facts.setdefault(name, count)
    memory = positive(values.get("hw.memsize"))
    if memory is not None:
        facts["system_memory_mib"] = memory // _MIB
    return facts


def _ioreg(result: ToolResult, mac: Mac) -> Answer:
    values, warnings = ioreg_values(result.stdout)
    facts: dict[str, Any] = {}
    for key, value in values.items():
        name = key.removesuffix("-core-count")
        count = positive(value)
        if name != key and count is not None:
            facts["gpu_cores" if name == "gpu" else f"{name}_cores"] = count
    status = ProbeStatus.OK if values else ProbeStatus.UNPARSEABLE
    unread = "not_understood" if result.stdout.strip() else "empty_output"
    return _answer(
        mac,
        status,
        "ok" if values else unread,
        warnings=warnings,
        facts=facts,
    )


def _uname(result: ToolResult, mac: Mac) -> Answer:
    said = uname_facts(result.stdout)
    if said["system"] is None and said["machine"] is None:
        return _answer(mac, ProbeStatus.UNPARSEABLE, "empty_output")
    if said["system"] != "darwin" and (said["system"] or mac.os != "darwin"):
        # Metal exists on macOS alone, whatever the processor below.
        mac = Mac(
            apple_silicon=False,
            virtual=mac.virtual,
            os=str(said["system"]) if said["system"] else mac.os,
        )
        return _answer(mac, ProbeStatus.OK, "ok")
    apple = True if said["machine"] == "arm64" or said["arm_kernel"] else None
    mac = mac.told(apple_silicon=apple, virtual=None)
    translated = mac.apple_silicon is True and said["machine"] == "x86_64"
    return _answer(
        mac,
        ProbeStatus.OK,
        "translated_process" if translated else "ok",
        facts={"translated_process": True} if translated else {},
    )


_READERS: Final[dict[str, Callable[[ToolResult, Mac], Answer]]] = {
    "system_profiler": _displays,
    "sysctl": _sysctl,
    "ioreg": _ioreg,
    "uname": _uname,
}
TOOLS: Final = frozenset(_READERS)
