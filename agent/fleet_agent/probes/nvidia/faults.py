"""What nvidia-smi's sentences mean: it prints them on standard output, with commas."""

from __future__ import annotations

import re
from typing import Final

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.text import lines, shortened
from fleet_contracts.capabilities import ProbeStatus


_FIELD: Final = re.compile(
    r"field \"([^\"\n]{1,80})\" is not a valid field", re.IGNORECASE
)

# Order matters: a cause stands before its symptoms, and every failure before the one
# sentence that means zero.
_SENTENCES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (r"driver/library version mismatch", "nvml_driver_library_mismatch"),
        (
            r"nvml: insufficient permissions|do not have suff?[iu]cient permissions",
            "nvml_permission",
        ),
        (
            (
                r"couldn.t find libnvidia-ml|libnvidia-ml\.so\S*(:| cannot| not)"
                r"|nvml: (library|shared library)? ?not found|nvml shared library not found"
            ),
            "nvml_library_missing",
        ),
        (
            (
                r"couldn.t communicate with the nvidia driver|nvml: driver not loaded"
                r"|driver is not (loaded|running)"
            ),
            "driver_not_running",
        ),
        (r"no supported gpus? (was|were) found", "no_gpu_bound_to_driver"),
        (r"gpu access blocked by the operating system", "gpu_access_blocked"),
        (r"failed to initiali[sz]e nvml", "nvml_init_failed"),
        (r"gpu is lost|fallen off the bus", "gpu_lost"),
        (r"unable to determine the device handle", "device_handle_error"),
        (r"unable to determine the number of gpus", "device_count_error"),
        (
            (
                r"option \S+ is not recognized|invalid combination of input arguments"
                r"|invalid argument|is not a valid (option|argument|format)"
            ),
            "bad_option",
        ),
        (
            r"error while loading shared libraries|cannot open shared object",
            "library_missing",
        ),
        (r"nvidia-smi has failed", "tool_failed"),
    )
)
_COMPLAINT: Final = re.compile(
    r"\b(error|failed|failure|fatal|cannot|could not|couldn.t|unable|denied)\b",
    re.IGNORECASE,
)
_NOTHING: Final = re.compile(r"\bno devices? (was |were )?found", re.IGNORECASE)
_WARNINGS: Final = (
    (re.compile(r"inforom is corrupted", re.IGNORECASE), "inforom_corrupted"),
    (re.compile(r"requires? (a )?reset", re.IGNORECASE), "gpu_requires_reset"),
    (re.compile(r"gpu is lost|fallen off the bus", re.IGNORECASE), "gpu_lost"),
)
_CODES: Final = {
    2: "bad_option",
    3: "not_available",
    4: "nvml_permission",
    8: "power_cable_missing",
    9: "driver_not_running",
    10: "interrupt_problem",
    12: "nvml_library_missing",
    13: "nvml_too_old",
    15: "gpu_lost",
    18: "nvml_driver_library_mismatch",
}


def rejected_fields(text: str) -> tuple[str, ...]:
    """Return the fields that this nvidia-smi does not know, in order."""
    return tuple(dict.fromkeys(_FIELD.findall(text)))


def fault(text: str) -> str | None:
    """Return the cause that *text* states, if it states a failure."""
    return next(
        (reason for pattern, reason in _SENTENCES if pattern.search(text)), None
    )


def warning_reason(warnings: tuple[str, ...]) -> str:
    """Return the code of the gravest known warning; foreign lines are noise."""
    for pattern, reason in _WARNINGS:
        if any(pattern.search(warning) for warning in warnings):
            return reason
    return "foreign_lines"


def without_devices(text: str, exit_code: int | None) -> Answer:
    """Judge an answer that holds no device at all."""
    told = tuple(shortened(line) for line in lines(text)[:20])
    rejected = rejected_fields(text)
    if rejected:
        return Answer(
            status=ProbeStatus.UNSUPPORTED_QUERY,
            reason="field_not_supported",
            retry_without=rejected,
            warnings=told,
        )
    reason = fault(text)
    if reason is None and _NOTHING.search(text):
        return Answer(
            status=ProbeStatus.NO_DEVICES,
            reason="no_devices_found",
            devices_complete=True,
        )
    if reason is None and exit_code not in (None, 0):
        reason = _CODES.get(exit_code or 0, "tool_failed")
    if reason is None and _COMPLAINT.search(text):
        reason = "tool_failed"
    if reason is not None:
        return Answer(status=ProbeStatus.TOOL_ERROR, reason=reason, warnings=told)
    return Answer(
        status=ProbeStatus.UNPARSEABLE,
        reason="not_understood" if told else "empty_output",
        warnings=told,
    )
