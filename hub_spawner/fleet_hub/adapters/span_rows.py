"""The table of what was held, and its sums; see ``controller/spans.py``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final

from fleet_hub.controller.spans import Held, Span, Total


TABLE: Final = """
CREATE TABLE spans (
    -- An allocation is released once: a second row would count it twice.
    allocation TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL,
    user TEXT NOT NULL,
    class TEXT NOT NULL,
    devices INTEGER NOT NULL,
    cpu_milli INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL,
    profile TEXT NOT NULL,
    machine TEXT NOT NULL,
    began INTEGER NOT NULL,
    ended INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX spans_by_end ON spans (ended);
"""
_SUMS: Final = """
SELECT user_id, user, class, devices, cpu_milli, memory_bytes, count(*),
    sum(max(0, min(ended, :until) - max(began, :since)))
FROM spans
WHERE ended >= :since AND began < :until AND (ended > :since OR began >= :since)
GROUP BY 1, 2, 3, 4, 5, 6
ORDER BY 1, 2, 3, 4, 5, 6
"""
"""Amounts are multiplied outside: as integers of 64 bits they would overflow."""


def write(connection: sqlite3.Connection, spans: Iterable[Span]) -> None:
    """Add *spans*."""
    connection.executemany(
        "INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                span.allocation,
                span.held.user_id,
                span.held.user,
                span.held.class_name,
                span.held.devices,
                span.held.cpu_milli,
                span.held.memory_bytes,
                span.profile,
                span.machine,
                span.began,
                span.ended,
            )
            for span in spans
        ),
    )


def rename(
    connection: sqlite3.Connection, renamed: Mapping[tuple[int, str], str]
) -> None:
    """Follow the names of users."""
    connection.executemany(
        "UPDATE spans SET user = ? WHERE user_id = ? AND user = ?",
        ((name, user_id, before) for (user_id, before), name in renamed.items()),
    )


def totals(connection: sqlite3.Connection, since: int, until: int) -> tuple[Total, ...]:
    """Return what was held alike within a period, added up."""
    rows = connection.execute(_SUMS, {"since": since, "until": until})
    return tuple(
        Total(
            held=Held(
                user_id=user_id,
                user=user,
                class_name=class_name,
                devices=devices,
                cpu_milli=cpu_milli,
                memory_bytes=memory_bytes,
            ),
            allocations=count,
            microseconds=microseconds,
        )
        for (
            user_id,
            user,
            class_name,
            devices,
            cpu_milli,
            memory_bytes,
            count,
            microseconds,
        ) in rows
    )
