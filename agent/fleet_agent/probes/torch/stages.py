"""Judges the steps that our own script wrote before it ended, however it ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleet_agent.probes.text import known, lines


MARK: Final = "##PROBE##"
_BACKENDS: Final = ("gloo", "nccl", "mpi", "ucc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What the steps said so far; None is unknown."""

    reached: tuple[str, ...] = ()
    facts: Mapping[str, Any]
    devices: tuple[Mapping[str, Any], ...] = ()
    operations: Mapping[str, bool]
    errors: tuple[str, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether the script came to its end."""
        return "done" in self.reached or "absent" in self.reached

    @property
    def trying(self) -> str | None:
        """The device whose operation never came back."""
        last = self.facts.get("trying")
        return last if isinstance(last, str) and last not in self.operations else None


def read_steps(stdout: str) -> Steps | None:
    """Return the steps in *stdout*, or None when our script did not speak."""
    marked = [step for line in lines(stdout) if (step := _step(line)) is not None]
    said = [step for step in marked if isinstance(step.get("stage"), str)]
    if not said:
        return None
    facts: dict[str, Any] = {}
    operations: dict[str, bool] = {}
    errors: list[str] = []
    for step in said:
        stage = step.get("stage")
        if stage == "trying":
            facts["trying"] = step.get("device")
        elif stage == "operation" and isinstance(step.get("device"), str):
            operations[step["device"]] = step.get("ok") is True
            if isinstance(step.get("error"), str):
                errors.append(step["error"][:500])
        else:
            facts |= {key: value for key, value in step.items() if key != "stage"}
    listed = facts.get("devices")
    return Steps(
        reached=tuple(str(step.get("stage")) for step in said),
        facts=facts,
        devices=tuple(item for item in listed if isinstance(item, Mapping))
        if isinstance(listed, list)
        else (),
        operations=operations,
        errors=tuple(errors),
    )


def _step(line: str) -> dict[str, Any] | None:
    _, mark, rest = line.partition(MARK)
    if not mark:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(rest.strip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def flag(value: object) -> bool | None:
    """Return a yes or no, or None for anything else."""
    return value if isinstance(value, bool) else None


def text(value: object) -> str | None:
    """Return a short known text."""
    found = known(value)
    return found[:120] if found is not None else None


def backends(value: object) -> tuple[str, ...] | None:
    """Return the known back ends of a list."""
    if not isinstance(value, list):
        return None
    return tuple(name for name in _BACKENDS if name in value)
