"""Opening the store's file: one writer, a whole database of our make, or a refusal."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from fleet_hub.adapters import span_rows
from fleet_hub.controller.errors import StoreLockedError, StoreUnusableError


SCHEMA_VERSION: Final = 4
APPLICATION_ID: Final = 0x464C4545
"""Marks our databases (``FLEE``), so that another program's file is never touched."""
LOG_PAGES: Final = 20_000
"""How far the log may grow (80 MB) before a commit must write it back itself.

The controller does that while it is idle, so only one that never is comes so far.
"""

_SCHEMA: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE workloads (
    id TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL,
    server_id INTEGER NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (user_id, server_id)
) STRICT;
CREATE TABLE issued (
    allocation TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL UNIQUE,
    workload TEXT NOT NULL,
    open INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;
-- A workload never holds twice, whatever a bug above may ask for.
CREATE UNIQUE INDEX one_open_allocation ON issued (workload) WHERE open;
CREATE TABLE machines (name TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT;
CREATE TABLE secrets (workload TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT;
CREATE TABLE events (
    workload TEXT NOT NULL,
    seq INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    step TEXT,
    record TEXT NOT NULL,
    PRIMARY KEY (workload, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('generation', 0);
"""
_CODES_AND_AUDIT: Final = """
CREATE TABLE codes (hash TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT;
-- AUTOINCREMENT: a number is never given twice, not even after a restore.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    target TEXT NOT NULL,
    record TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_target ON audit (target, seq);
"""
_USAGE: Final = """
CREATE TABLE usage (
    user INTEGER PRIMARY KEY, amount REAL NOT NULL, as_of REAL NOT NULL
) STRICT;
"""
_STEPS: Final = {1: _CODES_AND_AUDIT, 2: _USAGE, 3: span_rows.TABLE}
"""What leads from a version to the next; a step only ever adds."""

_REMEDY: Final = (
    "It was left as it is. Restore it from a backup, or move it away to begin with "
    "an empty store: running notebooks then have to be stopped on their machines."
)
_UNWRITABLE: Final = (
    "It is not damaged, and was left as it is: make room on its disk, and let this user "
    "write the file and its folder; then start again."
)
_NOT_ITS_FAULT: Final = frozenset(
    {
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_IOERR,
    }
)
"""What the disk or the permissions say, and not the content."""
_LOCK_POLL_SECONDS: Final = 0.05


def lock(path: Path, *, wait_seconds: float) -> int:
    """Return a descriptor that holds the only write lock of the store at *path*.

    Waits up to *wait_seconds*: a controller that was killed a moment ago may not be
    gone yet.

    Raises:
        StoreLockedError: another process keeps it.
        StoreUnusableError: nothing can be written beside it.
    """
    lock_path = path.with_name(path.name + ".lock")
    try:
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from error
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(_LOCK_POLL_SECONDS)
                continue
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise StoreLockedError(
                f"Another controller (process {holder or 'unknown'}) writes to {path}. "
                "Stop it first: two controllers would hand out the same machine twice."
            ) from None
        with suppress(OSError):
            # Who holds it is for people; on a full disk nobody reads it.
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        return descriptor


def connect(path: Path) -> sqlite3.Connection:
    """Return a checked connection to the store at *path*, made if there is none.

    Raises:
        StoreUnusableError: it is damaged, foreign, of a newer version, or cannot be
            written.
    """
    try:
        if not path.exists():
            path.touch(mode=0o600)
        connection = sqlite3.connect(path, isolation_level=None)
    except (OSError, sqlite3.OperationalError) as error:
        raise _unwritable(path, error) from error
    try:
        _prepare(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        # The low byte of an extended code is the plain one.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_ITS_FAULT:
            raise _unwritable(path, error) from error
        raise StoreUnusableError(f"{path} is damaged: {error}. {_REMEDY}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _unwritable(path: Path, error: Exception) -> StoreUnusableError:
    said = error.strerror if isinstance(error, OSError) else str(error)
    return StoreUnusableError(f"{path} cannot be written: {said}. {_UNWRITABLE}")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    faults = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
    if faults != ["ok"]:
        raise StoreUnusableError(f"{path} is damaged: {'; '.join(faults)}. {_REMEDY}")
    made_by = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and made_by != APPLICATION_ID:
        raise StoreUnusableError(
            f"{path} is a database of another program, or was left half made. {_REMEDY}"
        )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
    connection.execute("PRAGMA secure_delete=ON")
    if not tables:
        connection.executescript(
            f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id={APPLICATION_ID};"
            " PRAGMA user_version=1; COMMIT;"
        )
    _bring_up_to_date(connection)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise StoreUnusableError(
            f"{path} has schema version {version}; this program reads version "
            f"{SCHEMA_VERSION}. Run the version of JupyterHub Fleet that made it."
        )


def _bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Take the steps that are missing, each whole or not at all."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    while version in _STEPS:
        connection.executescript(
            f"BEGIN IMMEDIATE; {_STEPS[version]}"
            f" PRAGMA user_version={version + 1}; COMMIT;"
        )
        version += 1
