"""A stream of files as a folder: made in a place apart, complete before it is shown.

The place apart is below a folder that only the agent may enter.  Whatever is made is
made in a folder that is held open, new, and by its own name.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from fleet_agent.copying.errors import CopyError
from fleet_agent.copying.frames import (
    Data,
    End,
    Enter,
    Event,
    File,
    Leave,
    Link,
    Parser,
    Refused,
    Summary,
)
from fleet_contracts.amounts import describe_bytes
from fleet_contracts.reasons import Reason


_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
ENTRY_BYTES: Final = 4096
"""What an entry takes of a disk beside its data."""
SPARED_BYTES: Final = 256 << 20
"""What a copy leaves free on the disk."""


class Arriving:
    """One folder that is being made from a stream; ``close`` lets go of it."""

    def __init__(self, path: Path, *, uid: int, gid: int, limit_bytes: int) -> None:
        """Make the empty folder *path*, whose content is to be *uid*'s."""
        self._owner = None if os.geteuid() else (uid, gid)
        self._limit = limit_bytes
        self._parser = Parser()
        self.announced: Summary | None = None
        self.end: End | None = None
        self._file: tuple[int, File] | None = None
        path.mkdir(mode=0o700)
        self._folders = [os.open(path, _FOLDER)]

    @property
    def entries(self) -> int:
        """How many entries have come."""
        return self._parser.entries

    @property
    def size(self) -> int:
        """How many bytes have come."""
        return self._parser.size

    def feed(self, data: bytes) -> End | None:
        """Take in a part of the stream; return its end once that has come.

        Raises:
            StreamError: it is not what a faithful sender sends.
            CopyError: the sender refuses, or there is no room.
            OSError: it cannot be written.
        """
        for event in self._parser.feed(data):
            self._take(event)
        return self.end

    def close(self) -> None:
        """Hold nothing open any more."""
        if self._file is not None:
            os.close(self._file[0])
            self._file = None
        while self._folders:
            os.close(self._folders.pop())

    def _take(self, event: Event) -> None:
        if isinstance(event, Data):
            self._write(event)
            return
        self._complete_file()
        match event:
            case Summary():
                self._check_room(event)
                self.announced = event
            case Refused():
                raise CopyError(
                    f"the machine with the files refused: {event.detail}",
                    reason=event.reason,
                    detail=event.detail,
                )
            case Enter():
                os.mkdir(event.name, 0o700, dir_fd=self._folders[-1])
                self._folders.append(
                    os.open(event.name, _FOLDER, dir_fd=self._folders[-1])
                )
            case Leave():
                folder = self._folders.pop()
                try:
                    self._dress(folder, event.mode, event.mtime_ns)
                finally:
                    os.close(folder)
            case File():
                made = os.open(event.name, _NEW_FILE, 0o600, dir_fd=self._folders[-1])
                self._file = made, event
            case Link():
                self._link(event)
            case End():
                if self._owner is not None:
                    os.fchown(self._folders[0], *self._owner)
                self.end = event

    def _check_room(self, announced: Summary) -> None:
        if announced.size > self._limit:
            raise CopyError(
                "more than the limit is to come",
                reason=Reason.COPY_TOO_LARGE,
                detail=f"{describe_bytes(announced.size)}, and at most "
                f"{describe_bytes(self._limit)} may be copied",
            )
        needed = announced.size + announced.entries * ENTRY_BYTES + SPARED_BYTES
        free = shutil.disk_usage(self._folders[0]).free
        if needed > free:
            raise CopyError(
                f"{needed} bytes are needed and {free} are free",
                reason=Reason.DISK_FULL,
                detail=f"the files need {describe_bytes(needed)}, what is to stay "
                f"free included, and {describe_bytes(free)} are free",
            )
        disk = os.fstatvfs(self._folders[0])
        # A file system that makes its entries as needed says that it has none.
        if disk.f_files and announced.entries > disk.f_favail:
            raise CopyError(
                f"{announced.entries} entries are to come, {disk.f_favail} are left",
                reason=Reason.DISK_FULL,
                detail=f"there are {announced.entries} files and folders, and the disk "
                f"has room for {disk.f_favail} more",
            )

    def _write(self, data: Data) -> None:
        assert self._file is not None  # noqa: S101 - by the parser
        written = 0
        while written < len(data.content):
            written += os.pwrite(
                self._file[0], data.content[written:], data.offset + written
            )

    def _complete_file(self) -> None:
        if self._file is None:
            return
        made, file = self._file
        self._file = None
        try:
            os.ftruncate(made, file.size)
            self._dress(made, file.mode, file.mtime_ns)
        finally:
            os.close(made)

    def _link(self, link: Link) -> None:
        parent = self._folders[-1]
        os.symlink(link.target, link.name, dir_fd=parent)
        if self._owner is not None:
            os.chown(link.name, *self._owner, dir_fd=parent, follow_symlinks=False)

    def _dress(self, opened: int, mode: int, mtime_ns: int) -> None:
        """Give what is complete its owner, its mode and its time."""
        if self._owner is not None:
            os.fchown(opened, *self._owner)
        os.fchmod(opened, mode)
        os.utime(opened, ns=(mtime_ns, mtime_ns))
