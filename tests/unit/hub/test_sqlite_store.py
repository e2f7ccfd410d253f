"""What only the store on the disk promises: its lock, its refusals, its secrecy."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from fleet_builders import a_record, an_entry, some_secrets

from fleet_hub.adapters import store_file
from fleet_hub.adapters.codec import AUDIT
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


def test_an_entry_of_before_reasons_were_kept_is_still_read() -> None:
    """It has none."""
    kept = an_entry(detail="for ada")
    row = json.loads(AUDIT.encode(kept))
    assert row.pop("why") == ""
    assert AUDIT.decode(json.dumps(row)) == kept


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


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("SQLITE_READONLY", "attempt to write a readonly database"),
        ("SQLITE_FULL", "database or disk is full"),
        ("SQLITE_IOERR_WRITE", "disk I/O error"),
        ("SQLITE_CANTOPEN", "unable to open database file"),
    ],
)
def test_a_store_that_cannot_be_written_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    """Nobody is told to move a whole store away because its disk is full."""
    path = tmp_path / "store.sqlite"

    def refuse(connection: sqlite3.Connection, path: Path) -> None:
        error = sqlite3.OperationalError(said)
        error.sqlite_errorcode = getattr(sqlite3, code)
        raise error

    monkeypatch.setattr(store_file, "_prepare", refuse)
    with pytest.raises(StoreUnusableError) as caught:
        SqliteStore.open(path)
    text = str(caught.value)
    assert f"{path} cannot be written: {said}" in text
    assert "not damaged" in text
    assert "move it away" not in text


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)]
    if os.geteuid() != 0 or subprocess.run(command, check=False).returncode != 0:
        pytest.skip("only root may mount a small file system")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


def test_a_disk_that_is_full_or_read_only_at_the_start_is_said_to_be(
    tiny_disk: Path,
) -> None:
    """And the store is whole once there is room, and may be written."""
    path = tiny_disk / "store.sqlite"
    store = SqliteStore.open(path)
    store.commit(Change(workloads={"w1": a_record()}))
    store.close()
    filler = tiny_disk / "filler"
    with suppress(OSError), filler.open("wb") as out:
        while True:
            out.write(bytes(4096))
            out.flush()
    with suppress(StoreUnusableError, StoreWriteError):
        store = SqliteStore.open(path)
        try:
            many = {f"m{n}": a_record(f"m{n}", server_id=n + 10) for n in range(500)}
            with pytest.raises(StoreWriteError, match="Nothing was changed"):
                store.commit(Change(workloads=many))
        finally:
            store.close()
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    with pytest.raises(StoreUnusableError, match="cannot be written") as caught:
        SqliteStore.open(path)
    assert "not damaged" in str(caught.value)
    subprocess.run(["mount", "-o", "remount,rw", str(tiny_disk)], check=True)
    store = SqliteStore.open(path)
    try:
        assert [record.id for record in store.load().workloads] == ["w1"]
        store.commit(Change(workloads={"w2": a_record("w2", server_id=2)}))
    finally:
        store.close()


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


def test_a_store_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    """What it held stays, and it has room for codes and an audit log from then on."""
    path = tmp_path / "store.sqlite"
    store = SqliteStore.open(path)
    store.commit(Change(workloads={"w1": a_record()}))
    store.close()
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "DROP TABLE codes; DROP TABLE audit; DROP TABLE usage;"
            " DROP TABLE spans;"
            " PRAGMA user_version=1;"
        )
    connection.close()
    store = SqliteStore.open(path)
    store.commit(Change(audit=[an_entry()]))
    try:
        assert store.load().workloads == (a_record(),)
        assert len(store.audit()) == 1
    finally:
        store.close()


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


def test_a_commit_leaves_the_database_alone_until_there_is_time(
    tmp_path: Path,
) -> None:
    """Only ``write_back`` moves what was committed out of the log, however much it is."""
    path = tmp_path / "store.sqlite"
    store = SqliteStore.open(path)
    try:
        store.tidy()
        before = path.read_bytes()
        records = [
            a_record(f"w{number}", server_id=number, attempt="x" * 3000)
            for number in range(1500)
        ]
        store.commit(Change(workloads={record.id: record for record in records}))
        assert path.read_bytes() == before
        store.write_back()
        assert b"w1499" in path.read_bytes()
    finally:
        store.close()


def test_the_log_of_a_store_that_is_never_idle_has_an_end(tmp_path: Path) -> None:
    """A commit writes back itself before the log fills the disk."""
    store = SqliteStore.open(tmp_path / "store.sqlite")
    try:
        (pages,) = store._connection.execute("PRAGMA wal_autocheckpoint").fetchone()
        assert pages == store_file.LOG_PAGES
    finally:
        store.close()
