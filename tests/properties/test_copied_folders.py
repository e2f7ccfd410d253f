"""Folders of all sorts arrive as they were sent, and no stream reaches beyond one."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fleet_agent.copying.errors import CopyError
from fleet_agent.copying.frames import (
    MOST_DATA,
    MOST_DEPTH,
    Parser,
    StreamError,
    Writer,
    is_name,
    stays_inside,
)
from fleet_agent.copying.reading import Source, frames
from fleet_agent.copying.writing import Arriving
from fleet_contracts.reasons import Reason


HOME = "/home/jovyan"
PLENTY = 1 << 40

# Every byte but the two that no name can have; a name of the folder itself is no name.
names = st.binary(min_size=1, max_size=40).filter(is_name)
files = st.tuples(
    st.just("file"), st.binary(max_size=3000), st.sampled_from([0o644, 0o600, 0o755])
)
holes = st.tuples(st.just("hole"), st.integers(0, 1 << 33), st.binary(max_size=50))
links = st.tuples(st.just("link"), st.lists(names, min_size=1, max_size=3))
trees: st.SearchStrategy[dict[bytes, Any]] = st.recursive(
    st.dictionaries(names, files | holes | links, max_size=4),
    lambda below: st.dictionaries(names, files | links | below, max_size=4),
    max_leaves=20,
)


def make(folder: Path, tree: dict[bytes, Any]) -> None:
    """Make *tree* on the disk."""
    for name, content in tree.items():
        path = folder / os.fsdecode(name)
        if isinstance(content, dict):
            path.mkdir()
            make(path, content)
        elif content[0] == "file":
            path.write_bytes(content[1])
            path.chmod(content[2])
        elif content[0] == "hole":
            with path.open("wb") as file:
                file.truncate(content[1])
                file.seek(0, os.SEEK_END)
                file.write(content[2])
        else:
            path.symlink_to(os.fsdecode(b"/".join(content[1])))


def seen(folder: Path) -> dict[str, Any]:
    """Return everything about what is in *folder* that a copy is to keep."""
    found: dict[str, Any] = {}
    for path in folder.iterdir():
        status = path.lstat()
        kept = (stat.S_IMODE(status.st_mode), status.st_mtime_ns)
        if path.is_symlink():
            found[path.name] = os.readlink(path)  # noqa: PTH115 - as it is written
        elif path.is_dir():
            found[path.name] = (*kept, seen(path))
        else:
            found[path.name] = (*kept, status.st_size, _end_of(path))
    return found


def _end_of(path: Path) -> bytes:
    """Return what a file holds; of a long one the end, which has its data."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - (1 << 16)))
        return file.read()


def source(path: Path, **changes: Any) -> Source:
    """Return *path* as a folder that may be read."""
    values = {"uid": os.geteuid(), "seen_as": HOME, "limit_bytes": PLENTY}
    return Source(path=path, **(values | changes))


@contextmanager
def arriving(path: Path, **changes: Any) -> Iterator[Arriving]:
    """Yield what makes *path* from a stream."""
    values = {"uid": os.geteuid(), "gid": os.getegid(), "limit_bytes": PLENTY}
    made = Arriving(path, **(values | changes))
    try:
        yield made
    finally:
        made.close()


@settings(max_examples=60, deadline=None)
@given(tree=trees, size=st.integers(1, 5000))
def test_a_folder_arrives_as_it_was_whatever_is_in_it(
    tree: dict[bytes, Any], size: int
) -> None:
    """Any bytes in names and files, holes, links, modes and times, cut anywhere."""
    with tempfile.TemporaryDirectory() as scratch:
        sent, got = Path(scratch, "sent"), Path(scratch, "got")
        sent.mkdir()
        make(sent, tree)
        before = seen(sent)
        stream = b"".join(frames(source(sent)))
        with arriving(got) as made:
            for start in range(0, len(stream), size):
                made.feed(stream[start : start + size])
            assert made.end is not None
            assert made.end.left_out == 0
        assert seen(got) == before
        assert seen(sent) == before, "what is read stays untouched"


@settings(max_examples=200, deadline=None)
@given(data=st.data(), tree=trees)
def test_a_stream_with_another_byte_is_worth_nothing(
    data: st.DataObject, tree: dict[bytes, Any]
) -> None:
    """One wrong byte anywhere, or an end that is missing: it never counts as whole."""
    with tempfile.TemporaryDirectory() as scratch:
        make(Path(scratch), tree)
        stream = bytearray(b"".join(frames(source(Path(scratch)))))
    at = data.draw(st.integers(0, len(stream) - 1))
    if data.draw(st.booleans()):
        del stream[at:]
    else:
        stream[at] ^= data.draw(st.integers(1, 255))
    parser = Parser()
    try:
        events = list(parser.feed(bytes(stream)))
    except StreamError:
        return
    assert not any(type(event).__name__ == "End" for event in events)


@settings(max_examples=300, deadline=None)
@given(stream=st.binary(max_size=400))
def test_noise_is_refused_or_waits_for_more(stream: bytes) -> None:
    """Whatever comes: no other exception, and no more kept than one frame."""
    parser = Parser()
    begun = Writer().begin()
    try:
        for event in parser.feed(begun + stream):
            assert event is not None
    except StreamError:
        return
    assert not parser.is_over or b"N" in stream


def as_file(writer: Writer, name: bytes) -> bytes:
    """Return the frame of an empty file."""
    return writer.file(name, 0o644, 0, 0)


HOSTILE: dict[str, Callable[[Writer], bytes]] = {
    "a path upwards": lambda w: as_file(w, b".."),
    "a path down": lambda w: as_file(w, b"a/b"),
    "an absolute path": lambda w: as_file(w, b"/etc/passwd"),
    "no name": lambda w: as_file(w, b""),
    "a name with an end in it": lambda w: as_file(w, b"a\0b"),
    "a name too long": lambda w: as_file(w, b"a" * 256),
    "a folder upwards": lambda w: w.enter(b".."),
    "an absolute link": lambda w: w.link(b"a", b"/etc"),
    "a link upwards": lambda w: w.link(b"a", b"../x"),
    "a link that turns back": lambda w: w.link(b"a", b"b/../../x"),
    "a link without a target": lambda w: w.link(b"a", b""),
    "a name twice": lambda w: as_file(w, b"a") + as_file(w, b"a"),
    "a file in place of a link": lambda w: w.link(b"a", b"b") + as_file(w, b"a"),
    "a folder through a link": lambda w: w.link(b"a", b".") + w.enter(b"a"),
    "leaving the folder itself": lambda w: w.leave(0o755, 0),
    "data of no file": lambda w: w.data(0, b"x"),
    "data beyond the end": lambda w: w.file(b"a", 0o644, 0, 1) + w.data(0, b"xy"),
    "data before the data": lambda w: (
        w.file(b"a", 0o644, 0, 9) + w.data(4, b"x") + w.data(0, b"x")
    ),
    "setuid": lambda w: w._frame(b"F", b"\x09\xff" + bytes(16) + b"a"),
    "a device": lambda w: w._frame(b"B", b"\0\0null"),
    "a size that no file has": lambda w: w.file(b"a", 0o644, 0, 1 << 63),
    "more entries than announced": lambda w: b"".join(
        as_file(w, b"%d" % number) for number in range(11)
    ),
    "more data than announced": lambda w: (
        w.file(b"a", 0o644, 0, 99) + w.data(0, b"x" * 51)
    ),
    "a frame too large": lambda w: (
        w.file(b"a", 0o644, 0, 1 << 40) + w.data(0, b"x" * (MOST_DATA + 1))
    ),
    "folders without end": lambda w: w.enter(b"d") * (MOST_DEPTH + 1),
    "an end inside a folder": lambda w: w.enter(b"a") + w.end(0),
    "a second announcement": lambda w: w.summary(100, 100),
    "a refusal of another's reason": lambda w: w.refused(Reason.RETIRED, "no"),
    "something after the end": lambda w: w.end(0) + w.still(),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_stream_makes_nothing_outside(what: str, tmp_path: Path) -> None:
    """Refused, and beside the folder nothing is there that was not there before."""
    writer = Writer()
    stream = writer.begin() + writer.summary(10, 50) + HOSTILE[what](writer)
    with (
        arriving(tmp_path / "got") as made,
        pytest.raises((StreamError, OSError)),
    ):
        made.feed(stream)
    assert [path.name for path in tmp_path.iterdir()] == ["got"]


def test_a_size_that_no_disk_has_is_refused(tmp_path: Path) -> None:
    """Before any data comes."""
    writer = Writer()
    stream = writer.begin() + writer.summary(1, 1 << 60)
    for limit, reason in (
        (1 << 62, Reason.DISK_FULL),
        (1 << 59, Reason.COPY_TOO_LARGE),
    ):
        with (
            arriving(tmp_path / reason.value, limit_bytes=limit) as made,
            pytest.raises(CopyError) as refusal,
        ):
            made.feed(stream)
        assert refusal.value.explanation.reason is reason


@given(
    path=st.lists(st.sampled_from([b"..", b".", b"a", b"b", b""]), max_size=6),
    depth=st.integers(0, 3),
)
def test_a_link_that_counts_as_inside_is_inside(path: list[bytes], depth: int) -> None:
    """Even where every name on its way is itself a link to the folder's root."""
    target = b"/".join(path)
    if not stays_inside(target, depth):
        return
    level = depth
    for part in path:
        if part == b"..":
            level -= 1
            assert level >= 0
        elif part in {b"a", b"b"}:
            level = 0
