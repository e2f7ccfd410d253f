"""What one run of nvidia-smi says, whatever it was asked."""

from __future__ import annotations

import re
from dataclasses import replace

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.faults import process_fault
from fleet_agent.probes.nvidia.devices import (
    broken_reason,
    conclude,
    device,
    mig_facts,
)
from fleet_agent.probes.nvidia.faults import fault, without_devices
from fleet_agent.probes.nvidia.listing import read_listing
from fleet_agent.probes.nvidia.log import read_log
from fleet_agent.probes.nvidia.query import (
    Row,
    Table,
    asked_columns,
    context_columns,
    header,
    read_table,
)
from fleet_agent.probes.nvidia.table import read_table_drawing
from fleet_agent.probes.nvidia.xml import read_xml
from fleet_agent.probes.text import lines
from fleet_agent.probes.tools import ToolResult


_ROWS_CAN_STAND = (None, 0, 14)
"""14: a corrupted infoROM, which spoils a report and not the GPU."""


def read_nvidia_smi(result: ToolResult) -> Answer:
    """Judge one run of nvidia-smi."""
    broken = process_fault(result)
    if broken is not None:
        return broken
    if result.exit_code not in _ROWS_CAN_STAND:
        return without_devices(result.text, result.exit_code)
    answer = _query(result) or _for_people(result)
    return answer or without_devices(result.text, result.exit_code)


def read_rows(result: ToolResult) -> Table:
    """Return the rows of a query."""
    columns = asked_columns(result.argv)
    positions = {} if columns else context_columns(result.context)
    return read_table(result.stdout, columns, positions)


def _query(result: ToolResult) -> Answer | None:
    asked = asked_columns(result.argv) or context_columns(result.context)
    if not asked and not any(header(line) for line in lines(result.stdout)):
        return None
    table = read_rows(result)
    if not table.rows:
        return None
    if _is_loop(result.argv):
        return _samples(table)
    return _answer(table, result)


def _for_people(result: ToolResult) -> Answer | None:
    """Read an output that was made for people, by its shape."""
    answer = (
        read_listing(result.stdout)
        or read_xml(result.stdout)
        or read_log(result.stdout)
        or read_table_drawing(result.stdout)
    )
    if answer is not None and _one_device(result.argv):
        return replace(answer, devices_complete=False)
    return answer


def _answer(table: Table, result: ToolResult) -> Answer:
    rows = _distinct(table.rows)
    repeated = len(rows) < len(table.rows)
    devices = tuple(device(row) for row in rows)
    stderr = tuple(lines(result.stderr)[:20])
    warnings = table.warnings + stderr
    failure = fault("\n".join(warnings))
    short = _is_short(table)
    partial = (
        broken_reason(table.rows)
        or failure
        or ("truncated_row" if table.truncated else None)
        or ("devices_missing" if short else None)
        or ("duplicate_index" if repeated else None)
    )
    return conclude(
        devices,
        complete=not (
            failure or table.truncated or short or repeated or _one_device(result.argv)
        ),
        partial=partial,
        note=_note(table.rows),
        warnings=warnings,
        facts=mig_facts(devices),
    )


def _note(rows: tuple[Row, ...]) -> str | None:
    """Return the code of what a good answer leaves open."""
    for row in rows:
        mig = row.get("mig.mode.current")
        if mig and (mig.value or "").lower() == "enabled":
            return "mig_enabled"
    for row in rows:
        memory = row.get("memory.total")
        if memory and memory.value is None:
            denied = "permission" in memory.raw.lower()
            return "memory_not_readable" if denied else "memory_not_reported"
        if memory is None and _all_else_is_silent(row):
            return "memory_not_reported"
    return None


def _all_else_is_silent(row: Row) -> bool:
    """Whether *row* has columns that nobody named, and none of them says anything.

    More was asked for than is known, memory or not, and nothing of it was reported.
    """
    unnamed = [cell for field, cell in row.items() if field.startswith("column.")]
    return bool(unnamed) and all(cell.value is None for cell in unnamed)


def _is_short(table: Table) -> bool:
    counts = {row["count"].value for row in table.rows if "count" in row} - {None}
    return any(int(count or 0) > len(table.rows) for count in counts)


def _distinct(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Return one row for each device: a repeated identity is no second device."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for row in rows:
        own = {
            (field, row[field].value or "")
            for field in ("index", "uuid")
            if field in row and row[field].value is not None
        }
        if not own & seen:
            kept.append(row)
        seen |= own
    return tuple(kept)


def _one_device(argv: tuple[str, ...]) -> bool:
    """Whether the call named the devices it wanted, and so says nothing of others."""
    return any(
        argument in ("-i", "--id") or argument.startswith(("-i=", "--id="))
        for argument in argv
    )


def _is_loop(argv: tuple[str, ...]) -> bool:
    return any(re.match(r"(-l|-lms|--loop(-ms)?)(=|$)", argument) for argument in argv)


def _samples(table: Table) -> Answer:
    """Loop mode: the lines are samples over time, not devices."""
    first: dict[str, Row] = {}
    for row in table.rows:
        identity = next(
            (
                row[field].value
                for field in ("uuid", "index", "pci.bus_id")
                if field in row
            ),
            "",
        )
        first.setdefault(identity or "", row)
    uncertain = any(cell.uncertain for row in table.rows for cell in row.values())
    devices = tuple(device(row) for row in first.values())
    if uncertain:
        doubt = {"healthy": None, "execution_supported": None}
        devices = tuple(item.model_copy(update=doubt) for item in devices)
    return conclude(
        devices,
        complete=False,
        partial=broken_reason(table.rows)
        or ("value_errors" if uncertain else "loop_mode"),
        warnings=table.warnings,
    )
