"""What only the store on the disk promises: its lock, its refusals, its secrecy."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from fleet_builders import a_record, some_secrets

from fleet_hub.adapters.sqlite_store import SqliteStore
from fleet_hub.controller.errors import (
    StoreLockedError,
    StoreUnusableError,
    StoreWriteError,
)
from fleet_hub.controller.ports import Change


_HOLD = """
import sys
from pathlib import Path
from fleet_hub.adapters.sqlite_store import SqliteStore
store = SqliteStore.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


def test_a_second_writer_is_refused_and_told_who_writes(tmp_path: Path) -> None:
    """The lock is between processes, and ends with the one that holds it."""
    path = tmp_path / "store.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            with pytest.raises(StoreLockedError, match=str(process.pid)):
                SqliteStore.open(path)
        finally:
            process.kill()
    SqliteStore.open(path, wait_seconds=5).close()


@pytest.mark.parametrize("damage", ["noise", "truncated", "overwritten", "record"])
def test_a_damaged_store_is_refused_and_left_as_it_is(
    tmp_path: Path, damage: str
) -> None:
    """The sentence names the file and the remedy; not one byte of it changes."""
    path = tmp_path / "store.sqlite"
    store = SqliteStore.open(path)
    store.commit(
        Change(workloads={f"w{n}": a_record(f"w{n}", server_id=n) for n in range(200)})
    )
    store.tidy()
    store.close()
    whole = path.read_bytes()
    if damage == "noise":
        path.write_bytes(b"this is no database, " * 500)
    elif damage == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage == "overwritten":
        path.write_bytes(whole[:8192] + b"\xff" * 8192 + whole[16384:])
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE workloads SET record = '{}' WHERE id = 'w3'")
        connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnusableError, match=r"damaged|cannot be read") as caught:
        SqliteStore.open(path)
    assert str(path) in str(caught.value)
    assert "left as it is" in str(caught.value)
    assert "move it away" in str(caught.value)
    if damage != "record":
        assert path.read_bytes() == before
    with pytest.raises(StoreUnusableError):
        SqliteStore.open(path)


def test_another_programs_database_is_never_touched(tmp_path: Path) -> None:
    """A path given by mistake costs nothing."""
    path = tmp_path / "theirs.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnusableError, match="another program"):
        SqliteStore.open(path)
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """An older program does not guess what a newer one wrote."""
    path = tmp_path / "store.sqlite"
    SqliteStore.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(StoreUnusableError, match="schema version 99"):
        SqliteStore.open(path)


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """A kill between making the file and its tables loses nothing."""
    path = tmp_path / "store.sqlite"
    path.touch()
    SqliteStore.open(path).close()


def test_only_the_owner_may_read_the_store(tmp_path: Path) -> None:
    """It holds tokens until a workload is ready."""
    path = tmp_path / "deep" / "store.sqlite"
    store = SqliteStore.open(path)
    store.commit(Change(workloads={"w1": a_record()}))
    try:
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    finally:
        store.close()


def test_a_scrubbed_secret_is_in_no_file_after_tidying(tmp_path: Path) -> None:
    """Neither the database nor its journal keeps the bytes."""
    path = tmp_path / "store.sqlite"
    store = SqliteStore.open(path)
    try:
        store.commit(
            Change(workloads={"w1": a_record()}, secrets={"w1": some_secrets()})
        )
        store.commit(Change(secrets={"w1": None}))
        store.tidy()
        for file in tmp_path.iterdir():
            assert b"very-secret-value" not in file.read_bytes(), file
    finally:
        store.close()


def test_a_full_disk_fails_the_change_and_keeps_the_store(tmp_path: Path) -> None:
    """Nothing of the change is written, and the store works once there is room."""
    path = tmp_path / "store.sqlite"
    store = SqliteStore.open(path)
    try:
        store.commit(Change(workloads={"w1": a_record()}))
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count={pages}")
        many = {f"m{n}": a_record(f"m{n}", server_id=n + 10) for n in range(500)}
        with pytest.raises(StoreWriteError, match="Nothing was changed"):
            store.commit(Change(workloads=many))
        store._connection.execute("PRAGMA max_page_count=1000000")
        store.commit(Change(workloads=many))
    finally:
        store.close()
