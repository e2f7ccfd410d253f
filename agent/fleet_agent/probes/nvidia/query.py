"""Reads the rows of ``nvidia-smi --query-gpu``, between whatever else is printed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleet_agent.probes.nvidia.fields import Cell, canonical, cell
from fleet_agent.probes.text import lines, shortened


Row = dict[str, Cell]

_HEADER_CELL: Final = re.compile(
    r"([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)(?: \[[^\]]{1,12}\])?"
)
_FIELDS: Final = frozenset(
    {
        *("index", "uuid", "name", "count", "serial", "pstate", "pci.bus_id"),
        *("driver_version", "compute_cap", "vbios_version", "fan.speed"),
        *("memory.total", "memory.used", "memory.free", "memory.reserved"),
        *("utilization.gpu", "utilization.memory", "temperature.gpu", "power.draw"),
        *("mig.mode.current", "compute_mode", "persistence_mode", "power.limit"),
    }
)
_OF_PROCESSES: Final = frozenset({"pid", "process_name", "used_gpu_memory"})
_ANCHORS: Final = ("index", "uuid", "pci.bus_id", "driver_version", "memory.total")
_TRUNCATED: Final = re.compile(r"\d{1,4}|(GPU|MIG)-[\w-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows that could be read, and what stood around them."""

    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    warnings: tuple[str, ...] = ()
    truncated: bool = False
    """A line began like a row and was none: there is a device that is not listed."""


def asked_columns(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields that *argv* asks for, in order; empty if it is no query."""
    # A shell's command line is one argument of its own.
    return _asked(argv) or _asked(tuple(" ".join(argv).split()))


def _asked(argv: tuple[str, ...]) -> tuple[str, ...]:
    for position, argument in enumerate(argv):
        name, separator, fields = argument.partition("=")
        if name != "--query-gpu":
            continue
        if not separator:
            fields = argv[position + 1] if position + 1 < len(argv) else ""
        return tuple(canonical(field) for field in fields.split(",") if field.strip())
    return ()


def context_columns(context: Mapping[str, Any]) -> dict[int, str]:
    """Return the positions whose meaning is known from elsewhere."""
    columns = context.get("columns")
    if not isinstance(columns, Mapping):
        return {}
    return {
        int(position): canonical(str(field))
        for position, field in columns.items()
        if str(position).isdecimal() and len(str(position)) < 4  # noqa: PLR2004 - a column number
    }


def header(line: str) -> tuple[str, ...]:
    """Return the columns that *line* names; empty if it is no header."""
    matches = [_HEADER_CELL.fullmatch(part.strip()) for part in line.split(",")]
    names = tuple(canonical(match[1]) for match in matches if match)
    if len(names) != len(matches):
        return ()
    # A list of processes has a header too, and names cards in it.
    if not _FIELDS & set(names) or _OF_PROCESSES & set(names):
        return ()
    return names


def read_table(
    text: str, columns: tuple[str, ...], positions: Mapping[int, str] | None = None
) -> Table:
    """Return the rows of *text* under *columns*, or under the header that it prints."""
    rows: list[Row] = []
    warnings: list[str] = []
    truncated = False
    for line in lines(text):
        named = header(line)
        if named and (not columns or set(named) == set(columns)):
            columns = named
            continue
        row = _row(line, columns) if columns else _positioned(line, positions or {})
        if row is None:
            warnings.append(shortened(line))
            truncated = truncated or _looks_cut(line, columns)
        else:
            rows.append(row)
    return Table(
        columns=columns or tuple((positions or {}).values()),
        rows=tuple(rows),
        warnings=tuple(warnings[:50]),
        truncated=truncated,
    )


def _row(line: str, columns: tuple[str, ...]) -> Row | None:
    parts = _split(line, columns)
    if len(parts) != len(columns):
        return None
    return _judged(dict(zip(columns, parts, strict=True)))


def _judged(parts: Mapping[str, str]) -> Row | None:
    """Return *parts* as a row; a strange value is unknown where the rest is sound."""
    row: Row = {}
    strange = 0
    for field, part in parts.items():
        found = cell(field, part)
        strange += found is None
        row[field] = found or Cell(value=None, raw=part.strip())
    if strange and not _anchored(row, parts, strange):
        return None
    blank = all(field == "index" or not part.strip() for field, part in parts.items())
    return None if blank and len(parts) > 1 else row


def _anchored(row: Row, parts: Mapping[str, str], strange: int) -> bool:
    index_is_sound = "index" not in row or cell("index", parts["index"]) is not None
    anchors = [field for field in _ANCHORS if field in row and row[field].value]
    return index_is_sound and bool(anchors) and strange * 2 < len(parts)


def _split(line: str, columns: tuple[str, ...]) -> list[str]:
    """Split at commas; one too many belongs to the name, which alone is free text."""
    parts = line.split(",")
    extra = len(parts) - len(columns)
    if extra > 0 and columns.count("name") == 1:
        at = columns.index("name")
        middle = ",".join(parts[at : at + extra + 1])
        parts = [*parts[:at], middle, *parts[at + extra + 1 :]]
    return parts


def _positioned(line: str, positions: Mapping[int, str]) -> Row | None:
    """Read a row of which only some columns are known."""
    parts = line.split(",")
    if not positions or max(positions) >= len(parts):
        return None
    return _judged(
        {
            positions.get(position, f"column.{position}"): part
            for position, part in enumerate(parts)
        }
    )


def _looks_cut(line: str, columns: tuple[str, ...]) -> bool:
    parts = line.split(",")
    return (
        bool(columns)
        and columns[0] in ("index", "uuid")
        and len(parts) <= len(columns)
        and _TRUNCATED.fullmatch(parts[0].strip()) is not None
    )
