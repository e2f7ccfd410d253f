"""The sending end of a transfer: what it reads, what it refuses, and what changes."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from agent_support import a_runtime, a_spec
from copying_ends import Heard, an_order, drivers, fetched, there
from copying_lines import Dialled, Pipe, a_folder, joined, parts

from fleet_agent.copying import reading, receiving
from fleet_agent.copying.frames import End, Parser, Refused
from fleet_agent.copying.sending import Sending
from fleet_agent.ledger_entry import Entry, Key
from fleet_contracts.protocol import AgentEvent, SendFiles
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import DriverName


pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again without a pause."""
    monkeypatch.setattr(receiving, "_RETRY_SECONDS", 0)


async def sent(base: Path, order: SendFiles, *running: Entry) -> list[Any]:
    """Return what a machine with its folders in *base* answers to *order*."""
    near, far = joined()
    sender = Sending(dial=Dialled(near), drivers=drivers(base), entries=lambda: running)
    sender.send(order)
    parser, events = Parser(), []
    while not parser.is_over:
        part = await far.read_message()
        assert isinstance(part, bytes)
        events += parser.feed(part)
    far.close()
    await sender.close()
    return events


def refusal(events: list[Any]) -> Refused:
    """Return the refusal, before which nothing of any file was told."""
    (only,) = events
    assert isinstance(only, Refused)
    return only


async def test_only_a_folder_by_its_name_is_read(tmp_path: Path) -> None:
    """No path, no link to elsewhere, no place of the agent's own, nobody else's."""
    base = tmp_path / "native" / "notebooks"
    a_folder(base)
    a_folder(tmp_path, "secrets")
    (base / "linked").symlink_to(tmp_path / "secrets")
    for name in ("../../secrets", "linked", ".arrived", "/etc", "missing", "ada-1/sub"):
        told = refusal(await sent(base, an_order(notebook=name)))
        assert told.reason is Reason.COPY_FAILED
        assert str(tmp_path) not in told.detail
    docker = refusal(await sent(base, an_order(driver=DriverName.DOCKER)))
    assert docker.reason is Reason.COPY_FAILED


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
async def test_a_folder_of_another_owner_is_not_read(tmp_path: Path) -> None:
    """Nor a file of another's in the owner's own folder."""
    base = tmp_path / "notebooks"
    os.chown(a_folder(base), 1234, 1234)
    assert refusal(await sent(base, an_order())).reason is Reason.COPY_FAILED
    mine = a_folder(base, "ada-3")
    os.chown(mine / "sub" / "file", 1234, 1234)
    events = await sent(base, an_order(notebook="ada-3"))
    (end,) = (event for event in events if isinstance(event, End))
    assert (end.entries, end.left_out) == (1, 1)


async def test_a_folder_that_is_in_use_is_not_read(tmp_path: Path) -> None:
    """It comes once the server there has ended."""
    a_folder(tmp_path)
    spec = a_spec(notebook="ada-1", runtime=a_runtime(driver=DriverName.NATIVE))

    def entry(event: AgentEvent) -> Entry:
        return Entry(key=Key("other", 1), event=event, seq=1, spec=spec)

    told = refusal(await sent(tmp_path, an_order(), entry(AgentEvent.SERVING)))
    assert told.reason is Reason.COPY_SOURCE_AWAY
    events = await sent(tmp_path, an_order(), entry(AgentEvent.ENDED))
    assert isinstance(events[-1], End)


async def test_more_than_the_limit_is_not_sent(tmp_path: Path) -> None:
    """Not a byte of it."""
    a_folder(tmp_path)
    told = refusal(await sent(tmp_path, an_order(limit_bytes=1000)))
    assert told.reason is Reason.COPY_TOO_LARGE
    assert told.detail == "390.6 KiB, and at most 1000 bytes may be copied"


async def test_files_that_change_while_they_are_read_are_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was announced and is not there any more."""
    folder = a_folder(tmp_path)
    whole = reading.os.pread

    def shrinks(fd: int, size: int, offset: int) -> bytes:
        os.truncate(folder / "sub" / "file", 10)
        return whole(fd, size, offset)

    monkeypatch.setattr(reading.os, "pread", shrinks)
    told = (await sent(tmp_path, an_order()))[-1]
    assert isinstance(told, Refused)
    assert told.detail == "the files changed meanwhile"


@pytest.mark.parametrize("change", ["in place", "longer", "gone"])
async def test_a_file_that_changes_while_it_is_read_makes_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Half old and half new is a file that never was; the sentence says so."""
    folder = a_folder(tmp_path)
    path = folder / "sub" / "file"
    (folder / "sub" / "next").write_bytes(b"x")
    whole, began = reading.os.pread, []

    def meddles(fd: int, size: int, offset: int) -> bytes:
        content = whole(fd, size, offset)
        if not began:
            began.append(fd)
            if change == "in place":
                with path.open("r+b") as file:
                    file.write(b"new")
            elif change == "longer":
                with path.open("ab") as file:
                    file.write(b"more")
            else:
                # Whichever of the two is read first, the other one is not there.
                for other in (path, path.with_name("next")):
                    other.unlink()
        return content

    monkeypatch.setattr(reading.os, "pread", meddles)
    told = (await sent(tmp_path, an_order()))[-1]
    assert isinstance(told, Refused)
    assert told.reason is Reason.COPY_FAILED
    assert told.detail == "the files changed meanwhile"


async def test_what_is_no_file_is_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pipes, sockets and links that lead outside; a file with two names is two files."""
    folder = a_folder(tmp_path / "old")
    (folder / "one").write_bytes(b"twice")
    os.link(folder / "one", folder / "other")
    os.mkfifo(folder / "pipe")
    (folder / "outside").symlink_to("../../other-user/secret")
    (folder / "inside").symlink_to("one")
    name = os.fsdecode(b"\xff\xfe\x01 \n-rf")
    (folder / name).write_bytes(b"odd")
    with (folder / "holes").open("wb") as file:
        file.truncate(1 << 40)
    with socket.socket(socket.AF_UNIX) as bound:
        # Their paths are short, whatever the test's folder is called.
        monkeypatch.chdir(folder)
        bound.bind("socket")
        heard = Heard()
        await fetched(Dialled(Pipe(parts(folder))), tmp_path / "new", heard)
    got = there(tmp_path / "new").path
    assert {path.name for path in got.iterdir()} == {
        *("sub", "one", "other", "inside", "holes", name)
    }
    assert (got / "other").read_bytes() == b"twice"
    assert not (got / "other").samefile(got / "one")
    assert (got / "holes").stat().st_size == 1 << 40
    assert (got / "holes").stat().st_blocks == 0
    assert heard.notes[-1].detail is not None
    assert "; 3 were left out, which are links that lead" in heard.notes[-1].detail


async def test_folders_that_are_too_deep_are_told(tmp_path: Path) -> None:
    """Each is held open meanwhile, so there is a limit, and it is said."""
    deepest = a_folder(tmp_path).joinpath(*["d"] * 101)
    deepest.mkdir(parents=True)
    told = refusal(await sent(tmp_path, an_order()))
    assert told.reason is Reason.COPY_FAILED
    assert told.detail == "its folders are deeper than 100"


async def test_an_order_that_is_repeated_takes_the_place_of_the_first(
    tmp_path: Path,
) -> None:
    """The receiver has begun anew; whoever was there before hangs up."""
    a_folder(tmp_path)
    first, second = Pipe(), Pipe()
    dial = Dialled(first, second)
    sender = Sending(dial=dial, drivers=drivers(tmp_path), entries=lambda: ())
    sender.send(an_order())
    while not first.said:  # noqa: ASYNC110 - a pipe has no event for it
        await asyncio.sleep(0)
    sender.send(an_order())
    while not (second.said and first.is_closed):  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)
    await sender.close()
    assert second.is_closed


async def test_a_line_that_is_not_there_ends_no_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a fault of our own: the receiver asks again."""
    for fault in (OSError("no"), RuntimeError("a bug")):
        dial = Dialled(fault)
        sender = Sending(dial=dial, drivers=drivers(tmp_path), entries=lambda: ())
        sender.send(an_order())
        while dial.pipes:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
        await sender.close()
