"""A notebook folder as a stream, read without ever leaving the folder.

Everything is opened from its parent's descriptor and no link is followed, so what
somebody does to a path meanwhile leads nowhere else.  Nothing is changed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from fleet_agent.copying.errors import CopyError
from fleet_agent.copying.frames import (
    MOST_DATA,
    MOST_DEPTH,
    MOST_ENTRIES,
    Writer,
    is_name,
    stays_inside,
)
from fleet_contracts.amounts import describe_bytes
from fleet_contracts.reasons import Reason


_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE})
"""What was listed is not there any more, or is something else by now."""
_BLOCK: Final = 512
_STILL_EVERY: Final = 2000
"""Entries counted between two words that the sender is at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The folder that is read."""

    path: Path
    uid: int
    """Only what belongs to it is read."""
    seen_as: str
    """Where its programs see it: links to there lead inside."""
    limit_bytes: int


@dataclass(slots=True)
class _Count:
    entries: int = 0
    size: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    """One thing in an open folder."""

    name: bytes
    parent: int
    depth: int
    status: os.stat_result


def frames(source: Source) -> Iterator[bytes]:
    """Yield the stream of *source*: it ends well, or with a refusal that says why."""
    writer = Writer()
    yield writer.begin()
    try:
        yield from _told(source, writer)
    except CopyError as error:
        yield writer.refused(error.reason, error.detail)
    except OSError as error:
        if error.errno in _GONE:
            yield writer.refused(Reason.COPY_FAILED, _changed().detail)
            return
        # The path is left out: it would tell where on the machine the folder is.
        detail = f"something in the folder could not be read: {error.strerror}"
        yield writer.refused(Reason.COPY_FAILED, detail)


def _told(source: Source, writer: Writer) -> Iterator[bytes]:
    with ExitStack() as stack:
        root = _open_root(source)
        stack.callback(os.close, root)
        count = _Count()
        for number, entry in enumerate(_walk(root, source)):
            if entry is not None:
                _add(count, entry, source)
            if number % _STILL_EVERY == 0:
                yield writer.still()
        if count.size > source.limit_bytes:
            raise CopyError(
                "the folder is larger than the limit",
                reason=Reason.COPY_TOO_LARGE,
                detail=f"{describe_bytes(count.size)}, and at most "
                f"{describe_bytes(source.limit_bytes)} may be copied",
            )
        yield writer.summary(count.entries, count.size)
        left = _Count(count.entries, count.size)
        yield from _content(root, source, writer, left)
        yield writer.end(left.left_out)


def _open_root(source: Source) -> int:
    try:
        root = os.open(source.path, _FOLDER)
    except FileNotFoundError:
        raise CopyError(
            "the folder is not there", detail="the folder with the files is not there"
        ) from None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise CopyError("the folder is none", detail="it is no folder") from None
        raise
    if os.fstat(root).st_uid != source.uid:
        os.close(root)
        raise CopyError(
            f"the folder does not belong to uid {source.uid}",
            detail="the folder belongs to somebody else",
        )
    return root


def _walk(root: int, source: Source) -> Iterator[_Entry | None]:
    """Yield every entry below *root*, folders before what is in them; None: left one."""
    device = os.fstat(root).st_dev
    with ExitStack() as stack:
        levels = [(root, stack.enter_context(os.scandir(root)))]
        closers: list[ExitStack] = []
        stack.callback(_close_all, closers)
        while levels:
            parent, listing = levels[-1]
            found = next(listing, None)
            if found is None:
                levels.pop()
                if closers:
                    closers.pop().close()
                    yield None
                continue
            name = os.fsencode(found.name)
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            entry = _Entry(name, parent, len(levels) - 1, status)
            yield entry
            if not (stat.S_ISDIR(status.st_mode) and _is_sent(entry, source)):
                continue
            if len(levels) > MOST_DEPTH:
                raise CopyError(
                    "too deep", detail=f"its folders are deeper than {MOST_DEPTH}"
                )
            closer = ExitStack()
            closers.append(closer)
            opened = os.open(name, _FOLDER, dir_fd=parent)
            closer.callback(os.close, opened)
            if os.fstat(opened).st_dev != device:
                raise CopyError("a mount", detail="another disk is mounted in it")
            levels.append((opened, closer.enter_context(os.scandir(opened))))


def _close_all(closers: list[ExitStack]) -> None:
    for closer in closers:
        closer.close()


def _is_sent(entry: _Entry, source: Source) -> bool:
    """Whether *entry* is of a kind that travels, and is the owner's own."""
    mode = entry.status.st_mode
    if entry.status.st_uid != source.uid or not is_name(entry.name):
        return False
    if stat.S_ISLNK(mode):
        return _target(entry, source) is not None
    return stat.S_ISDIR(mode) or stat.S_ISREG(mode)


def _target(entry: _Entry, source: Source) -> bytes | None:
    """Return where a link leads, as seen from beside it; None: outside."""
    target = os.readlink(entry.name, dir_fd=entry.parent)
    for home in (source.seen_as, str(source.path)):
        start = os.fsencode(home.rstrip("/")) + b"/"
        if target.startswith(start):
            target = b"../" * entry.depth + target[len(start) :] or b"."
            break
    return target if stays_inside(target, entry.depth) else None


def _add(count: _Count, entry: _Entry, source: Source) -> None:
    if not _is_sent(entry, source):
        return
    count.entries += 1
    if count.entries > MOST_ENTRIES:
        raise CopyError(
            "too many files",
            reason=Reason.COPY_TOO_LARGE,
            detail=f"more than {MOST_ENTRIES} files and folders",
        )
    if not stat.S_ISREG(entry.status.st_mode):
        return
    if entry.status.st_blocks * _BLOCK >= entry.status.st_size:
        count.size += entry.status.st_size
        return
    with _opened(entry, source) as file:
        size = os.fstat(file.fd).st_size
        count.size += sum(end - start for start, end in _extents(file.fd, size))


def _content(
    root: int, source: Source, writer: Writer, left: _Count
) -> Iterator[bytes]:
    open_folders: list[os.stat_result] = []
    for entry in _walk(root, source):
        if entry is None:
            folder = open_folders.pop()
            yield writer.leave(folder.st_mode, folder.st_mtime_ns)
            continue
        if not _is_sent(entry, source):
            left.left_out += 1
            continue
        left.entries -= 1
        if left.entries < 0:
            raise _changed()
        mode = entry.status.st_mode
        if stat.S_ISDIR(mode):
            open_folders.append(entry.status)
            yield writer.enter(entry.name)
        elif stat.S_ISLNK(mode):
            target = _target(entry, source)
            if target is None:
                raise _changed()
            yield writer.link(entry.name, target)
        else:
            yield from _file(entry, source, writer, left)


def _file(
    entry: _Entry, source: Source, writer: Writer, left: _Count
) -> Iterator[bytes]:
    with _opened(entry, source) as file:
        status = os.fstat(file.fd)
        yield writer.file(
            entry.name, status.st_mode, status.st_mtime_ns, status.st_size
        )
        for start, end in _extents(file.fd, status.st_size):
            for offset in range(start, end, MOST_DATA):
                wanted = min(MOST_DATA, end - offset)
                content = os.pread(file.fd, wanted, offset)
                left.size -= len(content)
                if len(content) != wanted or left.size < 0:
                    raise _changed()
                yield writer.data(offset, content)
        if _state(os.fstat(file.fd)) != _state(status):
            # Written to while it was read: half of it may be old and half new.
            raise _changed()


@dataclass(slots=True)
class _opened:  # noqa: N801 - a context manager
    """One regular file of the folder, open for reading."""

    entry: _Entry
    source: Source
    fd: int = -1

    def __enter__(self) -> Self:
        self.fd = os.open(self.entry.name, _FILE, dir_fd=self.entry.parent)
        status = os.fstat(self.fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != self.source.uid:
            os.close(self.fd)
            raise _changed()
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.fd)


def _extents(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield where a file of *size* has data, from its beginning on."""
    position = 0
    while position < size:
        try:
            start = os.lseek(fd, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        end = min(os.lseek(fd, start, os.SEEK_HOLE), size)
        if start >= size or end <= start:
            return
        yield start, end
        position = end


def _state(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _changed() -> CopyError:
    return CopyError("changed meanwhile", detail="the files changed meanwhile")
