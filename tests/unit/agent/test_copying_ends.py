"""The two ends of a transfer together, and the receiving one with a faithless sender."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest
from copying_ends import KEY, Heard, an_order, drivers, fetched, left, there
from copying_lines import Dialled, Pipe, a_folder, hostile, joined, parts
from tornado.httpclient import HTTPClientError
from tornado.websocket import WebSocketError

from fleet_agent.copying import receiving, writing
from fleet_agent.copying.errors import CopyError
from fleet_agent.copying.frames import Writer
from fleet_agent.copying.patience import Patience
from fleet_agent.copying.receiving import fetch
from fleet_agent.copying.sending import Sending
from fleet_agent.drivers.base import NotebookFolder
from fleet_contracts.reasons import Reason
from fleet_contracts.sentences import sentence


pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again without a pause."""
    monkeypatch.setattr(receiving, "_RETRY_SECONDS", 0)


# ---------------------------------------------------------------------- together
async def test_what_one_machine_sends_the_other_has(tmp_path: Path) -> None:
    """Both real ends, and a restart of the sender that nobody notices."""
    folder = a_folder(tmp_path / "old")
    near, far = joined()
    sender = Sending(
        dial=Dialled(near), drivers=drivers(tmp_path / "old"), entries=lambda: ()
    )
    heard = Heard()
    sender.send(an_order())
    await fetched(Dialled(far), tmp_path / "new", heard)
    await sender.close()
    got = there(tmp_path / "new").path
    assert (got / "sub/file").read_bytes() == (folder / "sub/file").read_bytes()
    assert [note.reason for note in heard.notes] == [Reason.FILES_COPIED]
    assert heard.notes[0].detail == "2 files and folders, 390.6 KiB"
    last = {progress.step: progress for progress in heard.progress}
    assert last["copy_bytes"].done == last["copy_bytes"].total == 400_000
    assert last["copy_files"].done == last["copy_files"].total == 2
    assert far.said == ["arrived"]


async def test_a_copy_that_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    """A launch that is repeated dials nobody."""
    stream = parts(a_folder(tmp_path / "old"))
    await fetched(Dialled(Pipe(stream)), tmp_path / "new")
    nobody = Dialled()
    await fetched(nobody, tmp_path / "new")
    assert nobody.dialled == []


# ------------------------------------------------------------------ the receiver
async def test_a_transfer_that_breaks_begins_anew(tmp_path: Path) -> None:
    """Nobody there, refused, cut off in the middle: told, and tried until it is."""
    stream = parts(a_folder(tmp_path / "old"))
    writer = Writer()
    busy = [writer.begin(), writer.refused(Reason.COPY_SOURCE_AWAY, "in use")]
    dial = Dialled(
        OSError(errno.ECONNREFUSED, "refused"),
        WebSocketError("no"),
        Pipe([None]),
        Pipe([*stream[: len(stream) // 2], None]),
        Pipe(busy),
        Pipe(stream),
    )
    heard = Heard()
    await fetched(dial, tmp_path / "new", heard)
    assert [note.reason for note in heard.notes] == [
        Reason.COPY_SOURCE_AWAY,
        Reason.FILES_COPIED,
    ]
    assert (there(tmp_path / "new").path / "sub/file").exists()


async def test_a_machine_that_stays_away_holds_the_other_one_so_long_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start is told for how long at most, and ends with that as its reason."""
    heard = Heard()
    with monkeypatch.context() as patience:
        patience.setattr(
            receiving, "Patience", lambda _: Patience(iter(TIMES).__next__)
        )
        with pytest.raises(CopyError) as failed:
            await fetched(
                Dialled(*(Pipe([None]) for _ in TIMES[1:])), tmp_path / "new", heard
            )
    assert failed.value.explanation.reason is Reason.COPY_FAILED
    assert failed.value.detail == "the machine with them sent nothing for 5m"
    assert [sentence(note) for note in heard.notes] == [
        "The machine with your files cannot send them now; it is waited for at most 5m."
    ] * 2
    assert left(tmp_path / "new") == []


TIMES = (1000.0, 1000.0, 1059.0, 1299.0, 1300.0)
"""When the start began to wait, and looked at how long it has."""


async def test_patience_is_for_the_files_and_not_for_the_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever came renews it, and so does every try that reached nobody at all."""
    stream = parts(a_folder(tmp_path / "old"))
    half = stream[: len(stream) // 2]
    clock = iter((0.0, 299.0, 598.0, 598.0, 897.0, 897.0)).__next__
    monkeypatch.setattr(receiving, "Patience", lambda _: Patience(clock))
    heard = Heard()
    dial = Dialled(
        OSError(errno.ECONNREFUSED, "refused"),
        HTTPClientError(503),
        HTTPClientError(403),
        Pipe([*half, None]),
        Pipe(stream),
    )
    # The clock is looked at for: the beginning, two that reached nobody, a refusal,
    # and a transfer that broke (which renews it first).
    await fetched(dial, tmp_path / "new", heard)
    assert [note.reason for note in heard.notes] == [
        Reason.COPY_SOURCE_AWAY,
        Reason.COPY_SOURCE_AWAY,
        Reason.FILES_COPIED,
    ]


async def test_a_sender_that_says_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while, which is none here; the next one is heard."""
    stream = parts(a_folder(tmp_path / "old"))
    silent = Pipe()

    def speaks() -> Pipe:
        monkeypatch.setattr(receiving, "STALL_SECONDS", 30.0)
        return Pipe(stream)

    monkeypatch.setattr(receiving, "STALL_SECONDS", 0.0)
    await fetched(Dialled(silent, speaks), tmp_path / "new")
    assert silent.is_closed


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (hostile(lambda w: w.enter(b"..")), Reason.COPY_FAILED),
        (hostile(lambda w: w.link(b"a", b"/etc/passwd")), Reason.COPY_FAILED),
        (hostile(lambda w: w.enter(b"a"), lambda w: w.enter(b"/")), Reason.COPY_FAILED),
        (
            hostile(lambda w: w.file(b"a", 0o644, 0, 1), lambda _: b"x" * 40),
            Reason.COPY_FAILED,
        ),
        ([b"\x89PNG" * 20], Reason.COPY_FAILED),
        (["text"], Reason.COPY_FAILED),
        (hostile(lambda w: w.refused(Reason.COPY_FAILED, "no")), Reason.COPY_FAILED),
        (
            hostile(
                lambda w: w.file(b"a", 0o644, 0, 0), lambda w: w.file(b"a", 0o644, 0, 0)
            ),
            Reason.COPY_FAILED,
        ),
        ([Writer().begin(), Writer().summary(1, 1 << 31)], Reason.COPY_TOO_LARGE),
        ([Writer().begin(), Writer().summary(1, 1 << 60)], Reason.COPY_TOO_LARGE),
    ],
)
async def test_a_hostile_sender_leaves_nothing_behind(
    tmp_path: Path, stream: Iterable[bytes | str | None], reason: Reason
) -> None:
    """It fails with a reason, and nothing of what came is anywhere."""
    with pytest.raises(CopyError) as failed:
        await fetched(Dialled(Pipe(stream)), tmp_path / "new")
    assert failed.value.explanation.reason is reason
    assert left(tmp_path) == ["new"]


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, Reason.DISK_FULL),
        (errno.EDQUOT, Reason.DISK_FULL),
        (errno.EIO, Reason.COPY_FAILED),
        (errno.EEXIST, Reason.COPY_FAILED),
    ],
)
async def test_a_disk_that_refuses_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: Reason
) -> None:
    """A full disk is told as one."""
    stream = parts(a_folder(tmp_path / "old"))

    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(writing.os, "pwrite", refuse)
    with pytest.raises(CopyError) as failed:
        await fetched(Dialled(Pipe(stream)), tmp_path / "new")
    assert failed.value.explanation.reason is reason
    assert left(tmp_path / "new") == []


@pytest.mark.parametrize(
    ("free", "entries", "said"),
    [
        (
            1 << 20,
            100,
            (
                "the files need 256.4 MiB, what is to stay free included, "
                "and 1 MiB are free"
            ),
        ),
        (
            1 << 40,
            1,
            "there are 2 files and folders, and the disk has room for 1 more",
        ),
    ],
)
async def test_a_disk_without_room_is_told_before_anything_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, entries: int, said: str
) -> None:
    """For bytes and for entries, with the numbers that do not fit."""
    stream = parts(a_folder(tmp_path / "old"))
    disk = SimpleNamespace(f_files=entries, f_favail=entries)
    usage = SimpleNamespace(free=free)
    monkeypatch.setattr(writing.os, "fstatvfs", lambda _: disk)
    monkeypatch.setattr(writing.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(CopyError) as failed:
        await fetched(Dialled(Pipe(stream)), tmp_path / "new")
    assert failed.value.explanation.reason is Reason.DISK_FULL
    assert failed.value.detail == said
    assert left(tmp_path / "new") == []


async def test_a_start_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    """In the middle of it, once some of it has come."""
    stream = parts(a_folder(tmp_path / "old"))
    pipe = Pipe(stream[:-2])
    fetching = asyncio.create_task(fetched(Dialled(pipe), tmp_path / "new"))
    while not pipe.coming.empty():  # noqa: ASYNC110 - the queue has no event for it
        await asyncio.sleep(0)
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    assert pipe.is_closed
    assert left(tmp_path / "new") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
async def test_everything_belongs_to_the_account_that_the_owner_has_there(
    tmp_path: Path,
) -> None:
    """Uids differ from machine to machine; none of the sender's comes along."""
    folder = a_folder(tmp_path / "old")
    (folder / "link").symlink_to("sub")
    base = tmp_path / "new"
    target = NotebookFolder(base=base, name="ada-2", uid=4321, gid=4322)
    heard = Heard()
    await fetch(
        Dialled(Pipe(parts(folder))),
        KEY,
        target,
        limit_bytes=1 << 30,
        progress=heard.progress.append,
        note=heard.note,
    )
    came = [target.path, *target.path.rglob("*")]
    assert len(came) == 4
    for path in came:
        status = path.lstat()
        assert (status.st_uid, status.st_gid) == (4321, 4322)
