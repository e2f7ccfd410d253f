"""The ledger's file: made whole, opened alone, and never silently empty.

A new ledger is built beside its place and moved in once it is complete, so an empty
or half-written file can only mean damage.  Damage stops the agent with a sentence:
what the ledger knew of running workloads cannot be guessed.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from fleet_agent.errors import AnotherAgentError, LedgerBrokenError, LedgerWriteError


SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE allocations (
    allocation TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    event TEXT NOT NULL,
    seq INTEGER NOT NULL,
    spec TEXT,
    handle TEXT,
    url TEXT,
    explanation TEXT,
    stop TEXT,
    ends_at REAL,
    PRIMARY KEY (allocation, epoch)
) STRICT;
CREATE TABLE outbox (
    allocation TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    report TEXT NOT NULL,
    PRIMARY KEY (allocation, epoch, seq)
) STRICT;
CREATE TABLE forgotten (
    allocation TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    forgotten_at REAL NOT NULL
) STRICT;
"""


def open_ledger_file(path: Path) -> sqlite3.Connection:
    """Open the ledger at *path* for this process alone, making it if there is none.

    Raises:
        LedgerBrokenError: there is one, and it cannot be read.
        LedgerWriteError: there is none, and it cannot be made.
        AnotherAgentError: another process has it open.
    """
    if not path.exists():
        _make(path)
    if path.stat().st_size == 0:
        raise broken(path, "it is empty")
    try:
        connection = _connect(path)
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise AnotherAgentError(
                f"another process has the ledger {path} open; stop it first"
            ) from error
        raise broken(path, str(error)) from error
    except sqlite3.DatabaseError as error:
        raise broken(path, str(error)) from error
    return connection


def broken(path: Path, why: str) -> LedgerBrokenError:
    """Return the error that says what to do about a ledger that cannot be read."""
    return LedgerBrokenError(
        f"the ledger {path} cannot be read: {why}. It says which workloads run on "
        "this machine, so the agent does not start without it and has left it as it "
        "is. Restore it from a copy; or stop all notebooks of this machine, move the "
        "file and its -wal away, and start the agent: it then begins a new ledger, "
        "and the controller reports the old one as lost."
    )


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Commit what is done inside, or nothing of it; durable once this returns.

    Raises:
        LedgerWriteError: the disk is full or cannot be written; nothing has changed.
        LedgerBrokenError: the file turned out to be damaged.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    except sqlite3.OperationalError as error:
        raise LedgerWriteError(
            f"the ledger {path} cannot be written: {error}"
        ) from error
    except sqlite3.DatabaseError as error:
        raise broken(path, str(error)) from error


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    try:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        # macOS acknowledges a plain fsync before the disk has the data.
        connection.execute("PRAGMA fullfsync=ON")
        connection.execute("PRAGMA cache_size=-512")
        # In exclusive mode the lock is taken by the first write and then kept.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("COMMIT")
        _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise broken(path, verdict)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise broken(path, "it was written by a newer agent")
    if version != SCHEMA_VERSION:
        raise broken(path, "it is no ledger of an agent")
    identity = connection.execute("SELECT value FROM meta WHERE name = 'ledger_id'")
    if identity.fetchone() is None:
        raise broken(path, "its identity is missing")


def _make(path: Path) -> None:
    for leftover in ("-wal", "-journal"):
        if path.with_name(path.name + leftover).exists():
            raise broken(path, f"it is gone, though {path.name}{leftover} is there")
    draft = path.with_name(f"{path.name}.new")
    try:
        draft.unlink(missing_ok=True)
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=FULL")
            connection.executescript(f"BEGIN;{_SCHEMA}")
            connection.execute(
                "INSERT INTO meta VALUES ('ledger_id', ?), ('highest_epoch', '0')",
                (secrets.token_hex(16),),
            )
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            connection.execute("COMMIT")
        draft.chmod(0o600)
        draft.rename(path)
        _sync_folder(path.parent)
    except (OSError, sqlite3.OperationalError) as error:
        raise LedgerWriteError(f"the ledger {path} cannot be made: {error}") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
