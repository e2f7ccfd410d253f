"""How the Hub's own SQLite database is opened.

JupyterHub commits several times per start, on its event loop.  With SQLite's defaults
each commit waits for the disk twice, which limits a Hub to some eight starts a second.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine


def _open_with_write_ahead_log(connection: Any, _record: Any) -> None:
    if not isinstance(connection, sqlite3.Connection):
        return
    cursor = connection.cursor()
    # A crash of the machine may lose the last commits, but corrupts nothing, and a
    # crash of the Hub loses none: what must never be lost is in the controller's store.
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA busy_timeout=5000")
    cursor.close()


def use_write_ahead_log() -> None:
    """Open each SQLite database of this process with a write-ahead log from now on."""
    if not event.contains(Engine, "connect", _open_with_write_ahead_log):
        event.listen(Engine, "connect", _open_with_write_ahead_log)
