"""How a folder becomes a stream, and what a stream may hold: pure, and bounded.

A folder is told as a walk: enter, files, links, leave.  Every name is that of one entry
of the folder entered last, so no name can lead anywhere else.  Whatever the format
cannot say - devices, setuid, absolute links - cannot be asked for either.

The stream begins with what is to come, and ends with the digest of all before.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from fleet_contracts.reasons import Reason


MAGIC: Final = b"fleet-files-1\n"
MOST_DATA: Final = 128 * 1024
"""Bytes of a file in one frame."""
MOST_PAYLOAD: Final = MOST_DATA + 8
MOST_DEPTH: Final = 100
"""Of folders below the notebook folder: each is held open meanwhile."""
MOST_ENTRIES: Final = 10_000_000
MOST_SIZE: Final = (1 << 63) - 1
LONGEST_NAME: Final = 255
LONGEST_TARGET: Final = 4095
PERMISSIONS: Final = 0o777
"""The mode's bits that travel: no setuid, no setgid, no sticky bit."""

_HEAD: Final = struct.Struct(">cI")
_COUNTS: Final = struct.Struct(">QQ")
_KEPT: Final = struct.Struct(">Hq")
_FILE: Final = struct.Struct(">HqQ")
_OFFSET: Final = struct.Struct(">Q")
_LENGTH: Final = struct.Struct(">H")

REFUSALS: Final = frozenset(
    {Reason.COPY_FAILED, Reason.COPY_TOO_LARGE, Reason.COPY_SOURCE_AWAY}
)
"""What a sender may give as its reason."""


class StreamError(ValueError):
    """What came is not what a faithful sender sends; nothing of it is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What is to come, at the most."""

    entries: int
    size: int
    """Bytes of data; holes are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The sender cannot send, and why."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Enter:
    """A folder; what follows is in it, until it is left."""

    name: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The folder entered last is complete."""

    mode: int
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A regular file; its data follows, and what does not follow is a hole."""

    name: bytes
    mode: int
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Bytes of the last file."""

    offset: int
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A symbolic link to somewhere in the folder."""

    name: bytes
    target: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """All has come, and the digest is right."""

    entries: int
    size: int
    left_out: int
    """Entries that were not sent: links that lead outside, sockets, devices."""


Event = Summary | Refused | Enter | Leave | File | Data | Link | End


class Writer:
    """Makes frames, and keeps the digest of what it made."""

    def __init__(self) -> None:
        """Begin a stream."""
        self._digest = hashlib.sha256()

    def begin(self) -> bytes:
        """Return what every stream begins with."""
        return self._kept(MAGIC)

    def still(self) -> bytes:
        """Return a frame that only says that the sender is at work."""
        return self._frame(b"K", b"")

    def summary(self, entries: int, size: int) -> bytes:
        """Return the frame that tells what is to come."""
        return self._frame(b"S", _COUNTS.pack(entries, size))

    def refused(self, reason: Reason, detail: str) -> bytes:
        """Return the frame that ends a stream without its files."""
        text = detail.encode(errors="replace")[:1000]
        return self._frame(b"N", reason.value.encode() + b"\0" + text)

    def enter(self, name: bytes) -> bytes:
        """Return the frame of a folder."""
        return self._frame(b"D", name)

    def leave(self, mode: int, mtime_ns: int) -> bytes:
        """Return the frame that completes a folder."""
        return self._frame(b"U", _KEPT.pack(mode & PERMISSIONS, mtime_ns))

    def file(self, name: bytes, mode: int, mtime_ns: int, size: int) -> bytes:
        """Return the frame of a file."""
        head = _FILE.pack(mode & PERMISSIONS, mtime_ns, size)
        return self._frame(b"F", head + name)

    def data(self, offset: int, content: bytes) -> bytes:
        """Return a frame with bytes of the last file."""
        return self._frame(b"C", _OFFSET.pack(offset) + content)

    def link(self, name: bytes, target: bytes) -> bytes:
        """Return the frame of a symbolic link."""
        return self._frame(b"L", _LENGTH.pack(len(name)) + name + target)

    def end(self, left_out: int) -> bytes:
        """Return the last frame."""
        payload = _OFFSET.pack(left_out)
        self._digest.update(payload)
        payload += self._digest.digest()
        return _HEAD.pack(b"E", len(payload)) + payload

    def _frame(self, kind: bytes, payload: bytes) -> bytes:
        return self._kept(_HEAD.pack(kind, len(payload)) + payload)

    def _kept(self, data: bytes) -> bytes:
        self._digest.update(data)
        return data


class Parser:
    """Turns bytes into events, and refuses every stream that breaks a rule."""

    def __init__(self) -> None:
        """Expect the beginning."""
        self._buffer = bytearray()
        self._digest = hashlib.sha256()
        self._begun = False
        self._summary: Summary | None = None
        self._over = False
        self._file: File | None = None
        self._position = 0
        self.depth = 0
        self.entries = 0
        self.size = 0

    @property
    def is_over(self) -> bool:
        """Whether the stream has said its last word."""
        return self._over

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield what *data* completes.

        Raises:
            StreamError: a rule is broken; the stream is worth nothing any more.
        """
        self._buffer += data
        if not self._begun:
            if len(self._buffer) < len(MAGIC):
                return
            self._digest.update(self._take(len(MAGIC), expected=MAGIC))
            self._begun = True
        while len(self._buffer) >= _HEAD.size:
            if self._over:
                raise StreamError("something follows the end")
            kind, length = _HEAD.unpack_from(self._buffer)
            if length > MOST_PAYLOAD:
                raise StreamError(f"a frame of {length} bytes")
            if len(self._buffer) < _HEAD.size + length:
                return
            frame = self._take(_HEAD.size + length)
            event = self._understand(kind, frame[_HEAD.size :])
            if kind != b"E":
                self._digest.update(frame)
            if event is not None:
                yield event
        if self._over and self._buffer:
            raise StreamError("something follows the end")

    def _take(self, length: int, expected: bytes | None = None) -> bytes:
        taken = bytes(self._buffer[:length])
        del self._buffer[:length]
        if expected is not None and taken != expected:
            raise StreamError("this is no stream of files")
        return taken

    def _understand(self, kind: bytes, payload: bytes) -> Event | None:
        if kind == b"K":
            return None
        if kind == b"N":
            return self._refused(payload)
        if self._summary is None:
            if kind != b"S":
                raise StreamError("what is to come was not said first")
            return self._announced(payload)
        if kind == b"C":
            return self._data(payload)
        self._file = None
        makers: dict[bytes, Callable[[bytes], Event]] = {
            b"D": self._enter,
            b"U": self._leave,
            b"F": self._begin_file,
            b"L": self._link,
            b"E": self._end,
        }
        maker = makers.get(kind)
        if maker is None:
            raise StreamError(f"a frame of the unknown kind {kind!r}")
        return maker(payload)

    def _refused(self, payload: bytes) -> Refused:
        word, _, text = payload.partition(b"\0")
        try:
            reason = Reason(word.decode("ascii"))
        except ValueError:
            raise StreamError("a refusal without a reason") from None
        if reason not in REFUSALS:
            raise StreamError("a refusal with another's reason")
        self._over = True
        return Refused(reason=reason, detail=text[:1000].decode(errors="replace"))

    def _announced(self, payload: bytes) -> Summary:
        entries, size = _unpacked(_COUNTS, payload)
        if entries > MOST_ENTRIES or size > MOST_SIZE:
            raise StreamError("more is to come than there can be")
        self._summary = Summary(entries=entries, size=size)
        return self._summary

    def _enter(self, payload: bytes) -> Enter:
        if self.depth >= MOST_DEPTH:
            raise StreamError(f"folders deeper than {MOST_DEPTH}")
        name = self._entry(payload)
        self.depth += 1
        return Enter(name=name)

    def _leave(self, payload: bytes) -> Leave:
        if self.depth == 0:
            raise StreamError("the notebook folder itself is left")
        mode, mtime_ns = _unpacked(_KEPT, payload)
        self.depth -= 1
        return Leave(mode=_mode(mode), mtime_ns=mtime_ns)

    def _begin_file(self, payload: bytes) -> File:
        mode, mtime_ns, size = _unpacked(_FILE, payload[: _FILE.size])
        if size > MOST_SIZE:
            raise StreamError("a file larger than a file can be")
        name = self._entry(payload[_FILE.size :])
        self._file = File(name=name, mode=_mode(mode), mtime_ns=mtime_ns, size=size)
        self._position = 0
        return self._file

    def _data(self, payload: bytes) -> Data:
        (offset,) = _unpacked(_OFFSET, payload[: _OFFSET.size])
        content = payload[_OFFSET.size :]
        if self._file is None or not content:
            raise StreamError("data of no file")
        end = offset + len(content)
        if offset < self._position or end > self._file.size:
            raise StreamError("data outside of its file")
        self._position = end
        self.size += len(content)
        assert self._summary is not None  # noqa: S101 - by _understand
        if self.size > self._summary.size:
            raise StreamError("more data than was announced")
        return Data(offset=offset, content=content)

    def _link(self, payload: bytes) -> Link:
        (length,) = _unpacked(_LENGTH, payload[: _LENGTH.size])
        rest = payload[_LENGTH.size :]
        if length > len(rest):
            raise StreamError("a link without its name")
        name, target = self._entry(rest[:length]), rest[length:]
        if not stays_inside(target, self.depth):
            raise StreamError("a link that leads outside")
        return Link(name=name, target=target)

    def _end(self, payload: bytes) -> End:
        (left_out,) = _unpacked(_OFFSET, payload[: _OFFSET.size])
        if self.depth:
            raise StreamError("the end comes inside a folder")
        self._digest.update(payload[: _OFFSET.size])
        if payload[_OFFSET.size :] != self._digest.digest():
            raise StreamError("the digest is not that of what came")
        self._over = True
        return End(entries=self.entries, size=self.size, left_out=left_out)

    def _entry(self, name: bytes) -> bytes:
        """Return *name*, which is to be one entry's."""
        if not is_name(name):
            raise StreamError("a name that is no entry's")
        self.entries += 1
        assert self._summary is not None  # noqa: S101 - by _understand
        if self.entries > self._summary.entries:
            raise StreamError("more entries than were announced")
        return name


def is_name(name: bytes) -> bool:
    """Whether *name* can only be that of one entry of the folder that it is in."""
    return (
        0 < len(name) <= LONGEST_NAME
        and name not in {b".", b".."}
        and b"/" not in name
        and b"\0" not in name
    )


def stays_inside(target: bytes, depth: int) -> bool:
    """Whether a link in a folder *depth* levels down leads to somewhere inside.

    Upwards only at the beginning, where every step is a real folder: after a name it
    may be another link, and ``..`` would be that one's parent.
    """
    if not 0 < len(target) <= LONGEST_TARGET or b"\0" in target or target[:1] == b"/":
        return False
    parts = [part for part in target.split(b"/") if part not in {b"", b"."}]
    up = 0
    while up < len(parts) and parts[up] == b"..":
        up += 1
    return up <= depth and b".." not in parts[up:]


def _unpacked(form: struct.Struct, payload: bytes) -> tuple[int, ...]:
    if len(payload) != form.size:
        raise StreamError("a frame of a wrong length")
    return form.unpack(payload)


def _mode(mode: int) -> int:
    if mode & ~PERMISSIONS:
        raise StreamError("a mode with more than permissions")
    return mode
