"""The recorded cases of real tools, with what must be concluded from each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet_agent.probes.replay import load_case
from fleet_agent.probes.tools import ToolResult


CASES = Path(__file__).parent.parent / "data" / "discovery"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCase:
    """One recorded run and its conclusion."""

    name: str
    result: ToolResult
    expected: dict[str, Any]

    @property
    def undecided(self) -> frozenset[str]:
        """The fields that the evidence does not settle."""
        return frozenset(self.expected.get("undecided", ()))


def all_cases() -> tuple[ProbeCase, ...]:
    """Return every case, by name."""
    return tuple(
        ProbeCase(
            name=folder.name,
            result=load_case(folder),
            expected=json.loads((folder / "meta.json").read_text("utf-8"))["expected"],
        )
        for folder in sorted(CASES.iterdir())
        if folder.is_dir()
    )


def a_case(name: str) -> ProbeCase:
    """Return the case called *name*."""
    return next(case for case in all_cases() if case.name == name)


def a_run(tool: str, *argv: str, **facts: Any) -> ToolResult:
    """Return a run of *tool* that succeeded, unless *facts* say otherwise."""
    facts = {"exit_code": 0} | facts
    return ToolResult(tool=tool, argv=(tool, *argv), **facts)


def a_query(stdout: str, fields: str, **facts: Any) -> ToolResult:
    """Return a run of ``nvidia-smi --query-gpu``."""
    return a_run(
        "nvidia-smi",
        f"--query-gpu={fields}",
        "--format=csv,noheader,nounits",
        stdout=stdout,
        **facts,
    )


def differences(document: dict[str, Any], case: ProbeCase) -> list[str]:
    """Return where *document* contradicts what *case* demands.

    Unknown is always an acceptable memory kind, and so is unknown health where
    nothing is wrong; what the evidence does not settle is not compared.
    """
    found = []
    for field in ("status", "reason", "devices_complete", "retry_without", "facts"):
        if field in case.expected and field not in case.undecided:
            wanted, got = case.expected[field], document.get(field)
            if field == "facts":
                got = {name: document["facts"].get(name) for name in wanted}
            if wanted != got:
                found.append(f"{field}: {got!r}, expected {wanted!r}")
    found += _torch_differences(document, case)
    return found + _device_differences(document["devices"], case)


def _torch_differences(document: dict[str, Any], case: ProbeCase) -> list[str]:
    return [
        f"torch.{field}: {document['torch'].get(field)!r}, expected {wanted!r}"
        for field, wanted in case.expected.get("torch", {}).items()
        if not {f"torch.{field}", field} & case.undecided
        and document["torch"].get(field) != wanted
    ]


def _device_differences(got: list[dict[str, Any]], case: ProbeCase) -> list[str]:
    wanted = case.expected.get("devices")
    if wanted is None:
        return []
    if len(got) != len(wanted):
        return [f"{len(got)} devices, expected {len(wanted)}"]
    return [
        f"device {number} {field}: {mine[field]!r}, expected {value!r}"
        for number, (mine, theirs) in enumerate(zip(got, wanted, strict=True))
        for field, value in theirs.items()
        if f"devices.{field}" not in case.undecided
        and not _acceptable(field, mine[field], value)
    ]


def _acceptable(field: str, got: Any, wanted: Any) -> bool:
    if field == "memory_kind" and "unknown" in (got, wanted):
        return True
    if field == "healthy" and got is None:
        return wanted is not False
    return (field == "index" and wanted is None) or got == wanted
