"""Writes the timeline's contract as TypeScript: ``src/timeline/contract.ts``.

Run it after a change of ``fleet_contracts``; a test compares the file with what this
would write, so that the two sides cannot drift apart.
"""
# ruff: noqa: INP001 - a script beside the front end, not a package

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

from fleet_contracts import __version__
from fleet_contracts.allocations import ENDED, HOLDING, PHASE, Phase, State
from fleet_contracts.reasons import FACTS, Reason, ReasonKind
from fleet_contracts.time_limits import SetBy
from fleet_contracts.timeline import SCHEMA, Timeline, TimelineKind


TARGET = Path(__file__).parent.parent / "src" / "timeline" / "contract.ts"

_HEADER = """\
// Written by scripts/generate_contract.py from fleet_contracts; do not edit.
"""
_SCALARS = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def generate() -> str:
    """Return the whole module."""
    schema = Timeline.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    models = {
        name: model
        for name, model in sorted(definitions.items())
        if model["type"] == "object"
    }
    models["Timeline"] = schema
    parts = [
        _HEADER,
        f"export const SCHEMA = '{SCHEMA}';\n",
        f"export const VERSION = '{__version__}';\n",
        *map(_union, _ENUMS.values()),
        *(_interface(name, model) for name, model in models.items()),
        _states("HOLDING", HOLDING),
        _states("ENDED", ENDED),
        _table("PHASE_OF", "State", "Phase", {s: PHASE[s].value for s in State}),
        _table("KIND_OF", "Reason", "ReasonKind", {r: FACTS[r].kind for r in Reason}),
    ]
    return "\n".join(parts)


def _union(enum: type[StrEnum]) -> str:
    members = "".join(f"\n  | '{member.value}'" for member in enum)
    return f"export type {enum.__name__} ={members};\n"


def _interface(name: str, model: dict[str, Any]) -> str:
    required = set(model.get("required", ()))
    lines = [
        f"  {field}{'' if field in required else '?'}: {_type(schema, field, required)};"
        for field, schema in model["properties"].items()
    ]
    return "\n".join([f"export interface I{name} {{", *lines, "}", ""])


def _type(schema: dict[str, Any], field: str, required: set[str]) -> str:
    """Return the type; a field that may be absent may also be null on the wire."""
    written = _plain_type(schema)
    if field not in required and "null" not in written:
        written += " | null"
    return written


def _plain_type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name: str = schema["$ref"].rsplit("/", 1)[1]
        return name if name in _ENUMS else f"I{name}"
    if "anyOf" in schema:
        return " | ".join(_plain_type(option) for option in schema["anyOf"])
    if schema["type"] == "array":
        return f"readonly {_plain_type(schema['items'])}[]"
    return _SCALARS[schema["type"]]


_ENUMS = {
    enum.__name__: enum
    for enum in (State, Phase, TimelineKind, ReasonKind, Reason, SetBy)
}


def _states(name: str, states: frozenset[State]) -> str:
    members = ", ".join(f"'{state.value}'" for state in State if state in states)
    return f"export const {name}: ReadonlySet<State> = new Set<State>([{members}]);\n"


def _table(name: str, key: str, value: str, rows: dict[Any, str]) -> str:
    lines = [f"  {row.value}: '{to}'," for row, to in rows.items()]
    lines[-1] = lines[-1].rstrip(",")
    return "\n".join(
        [
            f"export const {name}: Readonly<Record<{key}, {value}>> = {{",
            *lines,
            "};",
            "",
        ]
    )


if __name__ == "__main__":
    TARGET.write_text(generate(), encoding="utf-8")
    sys.stdout.write(f"{TARGET.name} written\n")
