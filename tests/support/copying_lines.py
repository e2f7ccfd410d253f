"""Both ends of a transfer in one process, without a network."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fleet_agent.copying import reading
from fleet_agent.copying.frames import Writer
from fleet_agent.drivers.common.accounts import Account
from fleet_agent.ledger_entry import Key


ME = Account(uid=os.geteuid(), gid=os.getegid(), name="ada")


class Pipe:
    """One end: what it reads is what a test or another end put there."""

    close_reason: str | None = None

    def __init__(self, parts: Iterable[bytes | str | None] = ()) -> None:
        """Read *parts*; None is where the connection ends."""
        self.coming: asyncio.Queue[bytes | str | None] = asyncio.Queue()
        for part in parts:
            self.coming.put_nowait(part)
        self.said: list[bytes | str] = []
        self.is_closed = False
        self.peer: Pipe | None = None

    async def read_message(self) -> bytes | str | None:
        """Return the next part."""
        return await self.coming.get()

    async def write_message(self, part: bytes | str, binary: bool = False) -> None:
        """Keep *part*, and hand it to the other end."""
        assert binary is isinstance(part, bytes)
        self.said.append(part)
        if self.peer is not None:
            self.peer.coming.put_nowait(part)

    def close(self) -> None:
        """Hang up on both."""
        self.is_closed = True
        if self.peer is not None:
            self.peer.coming.put_nowait(None)


class Dialled:
    """Gives out ends in the order in which a test has made them."""

    def __init__(self, *pipes: Pipe | Exception | Callable[[], Pipe]) -> None:
        """Give out *pipes*, one for each dial."""
        self.pipes = list(pipes)
        self.dialled: list[tuple[Key, str]] = []

    async def __call__(self, key: Key, end: str) -> Any:
        """Return the next end."""
        self.dialled.append((key, end))
        found = self.pipes.pop(0)
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, Pipe) else found()


def joined() -> tuple[Pipe, Pipe]:
    """Return two ends: what one writes the other reads."""
    one, other = Pipe(), Pipe()
    one.peer, other.peer = other, one
    return one, other


def a_folder(base: Path, name: str = "ada-1") -> Path:
    """Return a folder with something in it."""
    folder = base / name
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "file").write_bytes(os.urandom(400_000))
    return folder


def parts(folder: Path) -> list[bytes]:
    """Return the faithful stream of *folder*."""
    source = reading.Source(
        path=folder, uid=ME.uid, seen_as="/home/jovyan", limit_bytes=1 << 30
    )
    return list(reading.frames(source))


def hostile(*frames: Callable[[Writer], bytes]) -> list[bytes | str | None]:
    """Return a stream of *frames* after a faithful beginning."""
    writer = Writer()
    begun = [writer.begin(), writer.summary(100, 1000)]
    return [*begun, *(frame(writer) for frame in frames), None]
