"""What the steps of our own script say, however the process ended."""

from __future__ import annotations

from typing import Any

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.tools import ToolResult, ends
from fleet_agent.probes.torch.answering import answering
from fleet_agent.probes.torch.causes import IMPORT_FAILED, cause
from fleet_agent.probes.torch.listed import rocm_devices
from fleet_agent.probes.torch.stages import Steps, backends, flag, text
from fleet_contracts.capabilities import ProbeStatus


def read_own_steps(steps: Steps, result: ToolResult, broken: Answer | None) -> Answer:
    """Judge *steps*; *broken* is how the process ended, if not by itself."""
    torch = _step_facts(steps)
    status, reason = _step_verdict(steps, result, broken)
    if broken is not None and broken.status is ProbeStatus.CRASH:
        # A crash while a device was tried is evidence about that device.
        torch |= _crashed(steps)
    hip = torch.get("hip_version") is not None
    devices = rocm_devices(steps.devices) if hip else ()
    facts: dict[str, Any] = {"listed": len(steps.devices)} if steps.devices else {}
    return answering(status, reason, torch, result, devices=devices, facts=facts)


def _step_facts(steps: Steps) -> dict[str, Any]:
    said = steps.facts
    hip = text(said.get("hip"))
    version = text(said.get("version"))
    built = text(said.get("cuda")) is not None if version is not None else None
    torch: dict[str, Any] = {
        "version": version,
        "interpreter": text(said.get("executable")),
        "cuda_built": False if hip is not None else built,
        "cuda_available": flag(said.get("cuda_available")),
        "mps_built": flag(said.get("mps_built")),
        "mps_available": flag(said.get("mps_available")),
        "hip_version": hip,
        "distributed_backends": backends(said.get("backends")),
    }
    torch["cuda"] = None if hip else _works(steps, "cuda", torch["cuda_available"])
    torch["mps"] = _works(steps, "mps", torch["mps_available"])
    if hip is not None or "absent" in steps.reached:
        torch["cuda"] = False
    if "absent" in steps.reached:
        torch["mps"] = False
    return torch


def _works(steps: Steps, kind: str, available: bool | None) -> bool | None:  # noqa: FBT001 - a fact's value
    """True only after an operation; False on evidence; else unknown."""
    tried = [ok for device, ok in steps.operations.items() if device.startswith(kind)]
    if any(tried):
        return True
    if tried or available is False:
        return False
    return None


def _crashed(steps: Steps) -> dict[str, Any]:
    if "imported" not in steps.reached:
        return {"cuda": False, "mps": False}
    device = steps.trying or ""
    return {kind: False for kind in ("cuda", "mps") if device.startswith(kind)}


def _step_verdict(
    steps: Steps, result: ToolResult, broken: Answer | None
) -> tuple[ProbeStatus, str]:
    if "absent" in steps.reached:
        return ProbeStatus.TOOL_ABSENT, "torch_not_installed"
    if broken is not None:
        return broken.status, broken.reason
    complaints = "\n".join((*steps.errors, ends(result.stderr)))
    if not steps.finished:
        failed = IMPORT_FAILED.search(complaints) or "imported" not in steps.reached
        return ProbeStatus.CRASH, "import_failed" if failed else "probe_traceback"
    if steps.errors:
        return ProbeStatus.OK_WITH_WARNINGS, cause(complaints) or "execution_failed"
    if ends(result.stderr).strip():
        return ProbeStatus.OK_WITH_WARNINGS, cause(
            ends(result.stderr)
        ) or "import_noise"
    return ProbeStatus.OK, "ok"
