"""Judges a tool that was absent, could not be started, hung or crashed."""

from __future__ import annotations

import re
from typing import Final

from fleet_agent.probes.answers import Answer, failed
from fleet_agent.probes.tools import ToolFault, ToolResult
from fleet_contracts.capabilities import ProbeStatus


_SIGNALS: Final = {
    4: "sigill",
    6: "sigabrt",
    7: "sigbus",
    8: "sigfpe",
    9: "sigkill",
    11: "sigsegv",
    15: "sigterm",
    31: "sigsys",
}
_SIGNAL_WORDS: Final = (
    (re.compile(r"segmentation fault|sigsegv", re.IGNORECASE), "sigsegv"),
    (re.compile(r"illegal instruction|sigill\b", re.IGNORECASE), "sigill"),
    (re.compile(r"\babort(ed)?\b \(core dumped\)|sigabrt", re.IGNORECASE), "sigabrt"),
    (re.compile(r"\bbus error\b|sigbus", re.IGNORECASE), "sigbus"),
    (re.compile(r"floating point exception|sigfpe", re.IGNORECASE), "sigfpe"),
)
_WINDOWS: Final = {
    0xC0000005: "access_violation",
    0xC000001D: "illegal_instruction",
    0xC0000094: "division_by_zero",
    0xC00000FD: "stack_overflow",
    0xC0000409: "fail_fast",
    0xC0000374: "heap_corruption",
}
_WINDOWS_FAULTS: Final = 0xC0000000
_SHELL_SIGNALS: Final = range(129, 160)
_TIMEOUT_CODE: Final = 124
_FAULT_CODES: Final[dict[int | None, ToolFault]] = {
    126: ToolFault.NOT_EXECUTABLE,
    127: ToolFault.NOT_FOUND,
}
_DENIED: Final = re.compile(r"permission|denied|zugriff|permiso", re.IGNORECASE)
_ABSENT: Final = re.compile(
    r"command not found|not recognized as (an internal|the name of)"
    r"|executable file not found|no such file or directory: '?\"?[\w./\\-]+'?\"?\s*$"
    r"|winerror 2\]|^filenotfounderror\b",
    re.IGNORECASE | re.MULTILINE,
)
# Debian's shell suggests a package, on either stream.
_SUGGESTED: Final = re.compile(
    r"^command '[\w./-]+' not found", re.IGNORECASE | re.MULTILINE
)
_NOT_EXECUTABLE: Final = re.compile(
    r"exec format error|cannot execute( binary file)?|\[errno (8|13)\]"
    r"|^permissionerror\b|winerror (5|193|216)\]",
    re.IGNORECASE | re.MULTILINE,
)
# The loader ends with a shell's code for "not found", of a program that is there.
_LOADER: Final = re.compile(r"error while loading shared libraries", re.IGNORECASE)
# French puts a space, often one that does not break, before its colons.
_SHELL: Final = re.compile(
    r"^(?:-?(?:/\S+/)?(?:ba|da|z|k|a)?sh|fish)\b[^:\n]*:"
    r"(?:\s*(?:line\s+)?\d+:)?\s*(?P<tool>[\w./-]+)\s?:\s*(?P<what>.+)$",
    re.MULTILINE,
)


def process_fault(result: ToolResult) -> Answer | None:
    """Judge a tool that was absent, hung or crashed; None when it simply ended."""
    if result.timed_out or result.exit_code == _TIMEOUT_CODE:
        return failed(ProbeStatus.TIMEOUT, "tool_timeout")
    return _start_fault(result) or _crash(result)


def is_absent(result: ToolResult) -> bool:
    """Whether the tool is not installed, live or in a recording."""
    fault = _start_fault(result)
    return fault is not None and fault.status is ProbeStatus.TOOL_ABSENT


def _start_fault(result: ToolResult) -> Answer | None:
    fault = result.fault or _FAULT_CODES.get(result.exit_code) or _told_fault(result)
    if fault is None or (result.fault is None and _LOADER.search(result.stderr)):
        return None
    if fault is ToolFault.NOT_FOUND:
        return failed(ProbeStatus.TOOL_ABSENT, "tool_not_found")
    return failed(ProbeStatus.TOOL_ERROR, "tool_not_executable")


def _told_fault(result: ToolResult) -> ToolFault | None:
    suggested = _SUGGESTED.search(result.text)
    if result.exit_code == 0 or (result.stdout.strip() and not suggested):
        return None
    if _NOT_EXECUTABLE.search(result.stderr):
        return ToolFault.NOT_EXECUTABLE
    if suggested or _ABSENT.search(result.stderr):
        return ToolFault.NOT_FOUND
    shell = _SHELL.search(result.stderr)
    if shell is None or result.tool not in shell["tool"]:
        return None
    # A shell that names the tool could not start it, in whatever language.
    denied = _DENIED.search(shell["what"])
    return ToolFault.NOT_EXECUTABLE if denied else ToolFault.NOT_FOUND


def _crash(result: ToolResult) -> Answer | None:
    reason = crash_reason(result.exit_code)
    if reason is None and result.exit_code != 0 and not result.stdout.strip():
        for pattern, name in _SIGNAL_WORDS:
            if pattern.search(result.stderr):
                reason = f"killed_by_{name}"
                break
    return None if reason is None else failed(ProbeStatus.CRASH, reason)


def crash_reason(exit_code: int | None) -> str | None:
    """Return how a process died, for an exit code that says so."""
    if exit_code is None or 0 <= exit_code < _SHELL_SIGNALS.start:
        return None
    unsigned = exit_code & 0xFFFFFFFF
    if unsigned >= _WINDOWS_FAULTS and not -256 < exit_code < 0:  # noqa: PLR2004 - signal numbers are small
        return _WINDOWS.get(unsigned, f"windows_fault_{unsigned:08x}")
    number = -exit_code if exit_code < 0 else exit_code - 128
    if exit_code > 0 and (exit_code not in _SHELL_SIGNALS or number not in _SIGNALS):
        return None
    return f"killed_by_{_SIGNALS.get(number, f'signal_{number}')}"
