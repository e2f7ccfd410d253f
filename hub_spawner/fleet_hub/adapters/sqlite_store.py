"""The durable store: one SQLite database, one writer, every commit on the disk.

A row holds one record as JSON, beside the few columns that SQLite itself must guard:
one workload per server, one epoch per allocation, one open allocation per workload.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from fleet_contracts.timeline import TimelineEvent
from fleet_hub.adapters import codec, span_rows, store_file
from fleet_hub.controller.audit_entry import Numbered
from fleet_hub.controller.errors import StoreUnusableError, StoreWriteError
from fleet_hub.controller.ports import EVENTS_KEPT, Change, Contents
from fleet_hub.controller.records import Issued, Secrets, Workload
from fleet_hub.controller.spans import Total
from fleet_hub.scheduling.snapshot import Usage


class SqliteStore:
    """The store in a file that only its owner can read."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: int) -> None:
        """Use an open connection and the lock that guards it; see ``open``."""
        self._path = path
        self._connection = connection
        self._lock: int | None = lock
        self._contents = self._read_contents()

    @classmethod
    def open(cls, path: Path, *, wait_seconds: float = 0.0) -> Self:
        """Open the store at *path*, making it if there is none.

        Raises:
            StoreLockedError: another process writes to it.
            StoreUnusableError: it is damaged or not ours; it was left as it is.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = store_file.lock(path, wait_seconds=wait_seconds)
        try:
            connection = store_file.connect(path)
            try:
                return cls(path, connection, lock)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            os.close(lock)
            raise

    def load(self) -> Contents:
        """Return what was durable when the store was opened."""
        return self._contents

    def _read_contents(self) -> Contents:
        read = self._connection.execute
        try:
            with self._writing():
                read("UPDATE meta SET value = value + 1 WHERE name = 'generation'")
            (generation,) = read(
                "SELECT value FROM meta WHERE name = 'generation'"
            ).fetchone()
            return Contents(
                generation=generation,
                workloads=tuple(
                    codec.WORKLOADS.decode(row[0])
                    for row in read("SELECT record FROM workloads ORDER BY id")
                ),
                issued=tuple(
                    codec.ISSUED.decode(row[0])
                    for row in read("SELECT record FROM issued ORDER BY epoch")
                ),
                machines=tuple(
                    codec.MACHINES.decode(row[0])
                    for row in read("SELECT record FROM machines ORDER BY name")
                ),
                codes=tuple(
                    codec.CODES.decode(row[0])
                    for row in read("SELECT record FROM codes ORDER BY hash")
                ),
                usage={
                    user: Usage(amount=amount, as_of=as_of)
                    for user, amount, as_of in read("SELECT * FROM usage")
                },
            )
        except (ValueError, TypeError, sqlite3.DatabaseError) as error:
            raise StoreUnusableError(
                f"{self._path} holds a record that cannot be read"
                f" ({type(error).__name__}). It was left as it is: restore it from a"
                " backup, or move it away to begin with an empty store."
            ) from error

    def commit(self, change: Change) -> None:
        """Make *change* durable before returning.

        Raises:
            StoreWriteError: nothing of it was written.
        """
        try:
            with self._writing():
                self._write(change)
        except sqlite3.Error as error:
            raise StoreWriteError(
                f"{self._path} could not be written: {error}. Nothing was changed."
            ) from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # A full disk may have rolled back already.
            with suppress(sqlite3.OperationalError):
                self._connection.execute("ROLLBACK")
            raise

    def _write(self, change: Change) -> None:
        execute = self._connection.execute
        for workload in change.removed:
            execute("DELETE FROM workloads WHERE id = ?", (workload,))
            execute("DELETE FROM events WHERE workload = ?", (workload,))
            execute("DELETE FROM secrets WHERE workload = ?", (workload,))
        for record in change.workloads.values():
            self._write_workload(record)
        self._write_issued(change.issued)
        for machine in change.machines.values():
            execute(
                "INSERT OR REPLACE INTO machines VALUES (?, ?)",
                (machine.name, codec.MACHINES.encode(machine)),
            )
        self._write_codes_and_audit(change)
        for user, used in change.usage.items():
            row = (user, used.amount, used.as_of)
            execute("INSERT OR REPLACE INTO usage VALUES (?, ?, ?)", row)
        span_rows.rename(self._connection, change.renamed)
        span_rows.write(self._connection, change.spans)
        for workload, secrets in change.secrets.items():
            execute("DELETE FROM secrets WHERE workload = ?", (workload,))
            if secrets is not None:
                execute(
                    "INSERT INTO secrets VALUES (?, ?)",
                    (workload, codec.SECRETS.encode(secrets)),
                )
        for workload, event in change.events:
            self._write_event(workload, event)
        if change.generation is not None:
            execute(
                "UPDATE meta SET value = ? WHERE name = 'generation'",
                (change.generation,),
            )

    def _write_codes_and_audit(self, change: Change) -> None:
        execute = self._connection.execute
        for code_hash, code in change.codes.items():
            execute("DELETE FROM codes WHERE hash = ?", (code_hash,))
            if code is not None:
                row = (code_hash, codec.CODES.encode(code))
                execute("INSERT INTO codes VALUES (?, ?)", row)
        for entry in change.audit:
            execute(
                "INSERT INTO audit (target, record) VALUES (?, ?)",
                (entry.target, codec.AUDIT.encode(entry)),
            )

    def _write_workload(self, record: Workload) -> None:
        self._connection.execute(
            "INSERT INTO workloads VALUES (?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET record = excluded.record",
            (
                record.id,
                record.key.user_id,
                record.key.server_id,
                codec.WORKLOADS.encode(record),
            ),
        )

    def _write_issued(self, issued: dict[str, Issued | None]) -> None:
        # What ends is written before what begins: one is open at any moment.
        for allocation, record in issued.items():
            if record is None:
                self._connection.execute(
                    "DELETE FROM issued WHERE allocation = ?", (allocation,)
                )
        records = [record for record in issued.values() if record is not None]
        for record in sorted(records, key=lambda record: record.open):
            self._connection.execute(
                "INSERT INTO issued VALUES (?, ?, ?, ?, ?) ON CONFLICT (allocation)"
                " DO UPDATE SET open = excluded.open, record = excluded.record",
                (
                    record.allocation,
                    record.epoch,
                    record.workload,
                    record.open,
                    codec.ISSUED.encode(record),
                ),
            )

    def _write_event(self, workload: str, event: TimelineEvent) -> None:
        step = event.progress.step if event.progress is not None else None
        if step is not None:
            self._connection.execute(
                "DELETE FROM events WHERE workload = ? AND generation = ? AND step = ?",
                (workload, event.generation, step),
            )
        self._connection.execute(
            "DELETE FROM events WHERE workload = ? AND seq <= ?",
            (workload, event.seq - EVENTS_KEPT),
        )
        self._connection.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
            (
                workload,
                event.seq,
                event.generation,
                step,
                codec.EVENTS.encode(event),
            ),
        )

    def events(self, workload: str, *, after: int = 0) -> tuple[TimelineEvent, ...]:
        """Return the events of *workload* with a higher ``seq`` than *after*."""
        rows = self._connection.execute(
            "SELECT record FROM events WHERE workload = ? AND seq > ? ORDER BY seq",
            (workload, after),
        )
        return tuple(codec.EVENTS.decode(row[0]) for row in rows)

    def secrets(self, workload: str) -> Secrets | None:
        """Return what a launch of *workload* needs, unless it was scrubbed."""
        row = self._connection.execute(
            "SELECT record FROM secrets WHERE workload = ?", (workload,)
        ).fetchone()
        return None if row is None else codec.SECRETS.decode(row[0])

    def audit(
        self, *, before: int | None = None, limit: int = 100, target: str = ""
    ) -> tuple[Numbered, ...]:
        """Return the newest entries of the audit log, newest first."""
        rows = self._connection.execute(
            "SELECT seq, record FROM audit WHERE seq < ? AND (? = '' OR target = ?)"
            " ORDER BY seq DESC LIMIT ?",
            (before if before is not None else 1 << 62, target, target, limit),
        )
        return tuple(
            Numbered(seq=seq, entry=codec.AUDIT.decode(record)) for seq, record in rows
        )

    def totals(self, since: int, until: int) -> tuple[Total, ...]:
        """Return what was released and held within a period, in microseconds."""
        return span_rows.totals(self._connection, since, until)

    def write_back(self) -> None:
        """Copy from the write-ahead log into the database what was committed since.

        SQLite does so by itself within every so many commits, and whoever was decided
        upon then would wait for ten times as long.  Little by little it is soon done.
        """
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def tidy(self) -> None:
        """Empty the write-ahead log: it holds copies of what was scrubbed since."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the database and let another process write.  Idempotent."""
        if self._lock is None:
            return
        self._connection.close()
        os.close(self._lock)
        self._lock = None
