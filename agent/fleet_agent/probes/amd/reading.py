"""What one run of rocm-smi or amd-smi says."""

from __future__ import annotations

import re
from typing import Final

from fleet_agent.probes.amd.plain import read_plain
from fleet_agent.probes.amd.structured import csv_devices, find_json, json_devices
from fleet_agent.probes.answers import Answer, failed
from fleet_agent.probes.faults import process_fault
from fleet_agent.probes.text import lines, shortened
from fleet_agent.probes.tools import ToolResult
from fleet_contracts.capabilities import AcceleratorDevice, ProbeStatus


_FAULTS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        # Printed on WSL and with the driver built into the kernel, too: unknown.
        (
            (
                r"driver not (initiali[sz]ed|loaded)|not found in modules"
                r"|amdsmi_status_(not_init|driver_not_loaded|init_error|no_drv)"
                r"|unable to detect any gpu devices|rsmi_status_init_error"
            ),
            "driver_not_running",
        ),
        (r"permission denied|amdsmi_status_no_perm", "permission_denied"),
        (
            r"librocm_smi64|libamd_smi|error while loading shared libraries",
            "library_missing",
        ),
        (
            r"unrecognized arguments|invalid (option|argument)|usage: \S*smi",
            "bad_option",
        ),
    )
)
_NOTHING: Final = re.compile(
    r"no (amd )?gpus? (specified|detected|found|available)", re.IGNORECASE
)
_COMPLAINT: Final = re.compile(
    r"\b(error|exception|failed|failure|fatal|cannot|could not|unable)\b",
    re.IGNORECASE,
)
_NO_JSON: Final = re.compile(r"no json data", re.IGNORECASE)
_TRACEBACK: Final = re.compile(
    r"^traceback \(most recent call last\)", re.IGNORECASE | re.MULTILINE
)
_WARNINGS: Final = (
    (re.compile(r"low-power state", re.IGNORECASE), "low_power_state"),
    (
        re.compile(r"missing the following required groups", re.IGNORECASE),
        "missing_groups",
    ),
    (re.compile(r"\w+Warning:"), "python_warnings"),
)


def read_amd_tool(result: ToolResult) -> Answer:
    """Judge one run of rocm-smi or amd-smi."""
    broken = process_fault(result)
    if broken is not None:
        return broken
    read = _devices(result.stdout)
    if read is None:
        return _without_devices(result)
    devices, foreign = read
    warnings = tuple(shortened(line) for line in foreign + lines(result.stderr))[:50]
    if not devices:
        return _named_none(warnings)
    return _with_devices(result, devices, warnings)


def _devices(text: str) -> tuple[tuple[AcceleratorDevice, ...], list[str]] | None:
    decoded = find_json(text)
    if decoded is not None:
        devices = json_devices(decoded[0])
        if devices is not None:
            return devices, decoded[1]
    return csv_devices(text) or read_plain(text)


def _named_none(warnings: tuple[str, ...]) -> Answer:
    reason = _fault("\n".join(warnings))
    if reason is not None:
        return failed(ProbeStatus.TOOL_ERROR, reason, *warnings)
    return Answer(
        status=ProbeStatus.NO_DEVICES,
        reason="no_devices_found",
        devices_complete=True,
        warnings=warnings,
    )


def _with_devices(
    result: ToolResult,
    devices: tuple[AcceleratorDevice, ...],
    warnings: tuple[str, ...],
) -> Answer:
    failure = _fault("\n".join(warnings))
    if failure is not None or result.exit_code not in (None, 0):
        status, reason = ProbeStatus.PARTIAL, failure or "tool_failed"
    elif warnings:
        status, reason = ProbeStatus.OK_WITH_WARNINGS, _warning(warnings)
    else:
        status, reason = ProbeStatus.OK, "ok"
    named = any(
        argument in ("-g", "--gpu", "-d", "--device") for argument in result.argv
    )
    return Answer(
        status=status,
        reason=reason,
        devices=devices,
        devices_complete=status is not ProbeStatus.PARTIAL and not named,
        warnings=warnings,
    )


def _without_devices(result: ToolResult) -> Answer:
    text = result.text
    told = tuple(shortened(line) for line in lines(text)[:20])
    reason = _fault(text)
    if reason is not None:
        return failed(ProbeStatus.TOOL_ERROR, reason, *told)
    if _TRACEBACK.search(text):
        return failed(ProbeStatus.CRASH, "tool_traceback", *told)
    if _NOTHING.search(text):
        return _named_none(told)
    if _NO_JSON.search(text):
        return failed(ProbeStatus.UNPARSEABLE, "no_json", *told)
    if result.exit_code not in (None, 0) or _COMPLAINT.search(text):
        return failed(ProbeStatus.TOOL_ERROR, "tool_failed", *told)
    reason = "not_understood" if told else "empty_output"
    return failed(ProbeStatus.UNPARSEABLE, reason, *told)


def _fault(text: str) -> str | None:
    return next((reason for pattern, reason in _FAULTS if pattern.search(text)), None)


def _warning(warnings: tuple[str, ...]) -> str:
    for pattern, reason in _WARNINGS:
        if any(pattern.search(warning) for warning in warnings):
            return reason
    return "foreign_lines"
