"""What a torch probe that is not ours says: environment reports and bare values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.tools import ToolResult, ends
from fleet_agent.probes.torch.answering import answering
from fleet_agent.probes.torch.causes import (
    CUDA_TRIED,
    HIP_TRIED,
    IMPORT_FAILED,
    METAL_TOO_OLD,
    MISSING,
    NO_CUDA_DRIVER,
    NOT_BUILT,
    NOT_BUILT_FOR_METAL,
    TRACEBACK,
    cause,
)
from fleet_agent.probes.torch.listed import rocm_devices
from fleet_agent.probes.torch.prose import read_prose
from fleet_agent.probes.torch.stages import flag
from fleet_contracts.capabilities import ProbeStatus


_NEWER_METAL: Final = (12, 3)
"""The first macOS whose Metal torch can use."""


def read_other_probe(result: ToolResult) -> Answer:
    """Judge what another torch probe printed."""
    said = read_prose(result.stdout, f"{' '.join(result.argv)}\n{ends(result.stderr)}")
    complaints = ends(result.stderr)
    if MISSING.search(complaints) and "version" not in said:
        torch = {"cuda": False, "mps": False}
        return answering(ProbeStatus.TOOL_ABSENT, "torch_not_installed", torch, result)
    torch = _prose_facts(said, complaints)
    answered = any(value is not None for value in torch.values())
    answered = answered or "xpu_available" in said
    failed = result.exit_code not in (None, 0)
    if not answered:
        if failed or TRACEBACK.search(complaints):
            imported = not IMPORT_FAILED.search(complaints)
            reason = "probe_traceback" if imported else "import_failed"
            return answering(ProbeStatus.CRASH, reason, torch, result)
        reason = "not_understood" if result.text.strip() else "empty_output"
        return answering(ProbeStatus.UNPARSEABLE, reason, torch, result)
    status, reason = _prose_verdict(torch, said, result, failed=failed)
    facts = {
        name: said[name] for name in ("xpu_available",) if said.get(name) is not None
    }
    if torch["cuda_built"] is False and _is_rocm(said):
        facts["rocm_build"] = True
    devices = rocm_devices(said.get("properties", ()))
    return answering(status, reason, torch, result, facts=facts, devices=devices)


def read_broken_probe(result: ToolResult, broken: Answer) -> Answer:
    """Judge a probe that crashed or hung: what it had printed by then stays said."""
    said = read_prose(result.stdout, " ".join(result.argv))
    torch = _prose_facts(said, "") if said else {}
    return answering(broken.status, broken.reason, torch, result)


def _is_rocm(said: Mapping[str, Any]) -> bool:
    targets = said.get("targets", ())
    properties = said.get("properties", ())
    return bool(
        said.get("hip_version")
        or "+rocm" in str(said.get("version"))
        or any(str(target).startswith("gfx") for target in targets)
        or any("gfx" in str(item.get("gcnArchName")) for item in properties)
    )


def _prose_facts(said: Mapping[str, Any], complaints: str) -> dict[str, Any]:
    torch: dict[str, Any] = {
        name: said.get(name)
        for name in (
            "version",
            "cuda_available",
            "mps_built",
            "mps_available",
            "hip_version",
        )
    }
    torch["cuda_built"] = _cuda_built(said, complaints)
    _take_refusals(torch, complaints)
    named = [name for name in ("gloo", "nccl") if said.get(name) is True]
    if "gloo" in said or "nccl" in said:
        torch["distributed_backends"] = tuple(named)
    # A failed operation is evidence; being available alone is none.
    failure = cause(complaints)
    for kind, tried in (("cuda", CUDA_TRIED.search(complaints)), ("mps", None)):
        available = torch[f"{kind}_available"]
        unusable = available is False or torch[f"{kind}_built"] is False
        broken = failure and (available or tried)
        torch[kind] = False if unusable or broken else None
    return torch


def _take_refusals(torch: dict[str, Any], complaints: str) -> None:
    """Add what an error says about the build and its back ends, where nothing else did."""
    if NOT_BUILT.search(complaints) or NO_CUDA_DRIVER.search(complaints):
        _fill(torch, cuda_available=False)
    if NOT_BUILT_FOR_METAL.search(complaints):
        _fill(torch, mps_built=False, mps_available=False)
    elif METAL_TOO_OLD.search(complaints):
        _fill(torch, mps_built=True, mps_available=False)
    if torch["mps_available"] is True:
        _fill(torch, mps_built=True)


def _fill(torch: dict[str, Any], **facts: bool) -> None:
    for name, value in facts.items():
        if torch[name] is None:
            torch[name] = value


def _cuda_built(said: Mapping[str, Any], complaints: str) -> bool | None:
    """Whether the build is for NVIDIA's CUDA: the first sign that speaks decides."""
    targets = said.get("targets", ())
    stated_none = "cuda_version" in said and "hip_version" in said
    signs: tuple[tuple[Any, bool | None], ...] = (
        (NOT_BUILT.search(complaints) or HIP_TRIED.search(complaints), False),
        (_is_rocm(said), False),
        (said.get("cuda_version"), True),
        (any(str(target).startswith("sm_") for target in targets), True),
        (said.get("properties") or "+cu" in str(said.get("version")), True),
        (CUDA_TRIED.search(complaints) or NO_CUDA_DRIVER.search(complaints), True),
        (said.get("cuda_available") is True, True),
        ("+cpu" in str(said.get("version")), False),
        (said.get("cuda_flag") is not None, flag(said.get("cuda_flag"))),
        (stated_none, False),
    )
    return next((built for sign, built in signs if sign), None)


def _prose_verdict(
    torch: Mapping[str, Any],
    said: Mapping[str, Any],
    result: ToolResult,
    *,
    failed: bool,
) -> tuple[ProbeStatus, str]:
    complaints = ends(result.stderr)
    if NOT_BUILT.search(complaints):
        return ProbeStatus.OK, "framework_without_cuda"
    if NOT_BUILT_FOR_METAL.search(complaints):
        return ProbeStatus.OK, "framework_without_mps"
    known_cause = cause(complaints)
    if known_cause is not None:
        return ProbeStatus.OK_WITH_WARNINGS, known_cause
    if complaints.strip():
        reason = "probe_traceback" if failed else "import_noise"
        return ProbeStatus.OK_WITH_WARNINGS, reason
    return ProbeStatus.OK, _quiet_reason(torch, said, result.context)


def _quiet_reason(
    torch: Mapping[str, Any], said: Mapping[str, Any], context: Mapping[str, Any]
) -> str:
    if _is_rocm(said):
        return "ok" if said.get("properties") else "rocm_build"
    if torch["mps_built"] and torch["mps_available"] is False:
        return "mps_os_too_old" if _too_old(context) else "mps_unavailable"
    if torch["cuda_available"] is False and not torch["mps_available"]:
        built = torch["cuda_built"]
        return "framework_without_cuda" if built is False else "cuda_unavailable"
    return "ok"


def _too_old(context: Mapping[str, Any]) -> bool:
    parts = str(context.get("os_version") or "").split(".")
    numbers = tuple(int(part) for part in parts[:2] if part.isdecimal())
    return context.get("os") == "darwin" and bool(numbers) and numbers < _NEWER_METAL
