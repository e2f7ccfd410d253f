"""The processes of pretended notebooks: started, told, waited for and reaped.

A new process holds its folder's lock from its first moment, and waits for one line
before it does anything.  So nothing is lost when the agent dies before it could make
the process's name durable: the line never comes, the process ends, and whoever can
take the lock knows that it has.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any


_POLL_SECONDS = 0.02


class Children:
    """The servers that this agent has started itself, by pid."""

    def __init__(self) -> None:
        """Begin without any."""
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def spawn(self, folder: Path, descriptor: int) -> int:
        """Start a server's process, with *descriptor* as its socket; return its pid."""
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with (folder / "log").open("ab") as log:
                child = subprocess.Popen(
                    [
                        *(sys.executable, "-P", "-m"),
                        "fleet_agent.drivers.simulation_server",
                    ],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env={"PATH": os.defpath},
                    cwd=folder,
                    pass_fds=(descriptor, lock),
                    start_new_session=True,
                )
        finally:
            os.close(lock)
        self._children[child.pid] = child
        return child.pid

    def tell(self, pid: int, launch: dict[str, Any]) -> None:
        """Give a process the line that it waits for."""
        stdin = self._children[pid].stdin
        assert stdin is not None  # noqa: S101 - opened as a pipe
        with suppress(BrokenPipeError), stdin:
            stdin.write(json.dumps(launch).encode() + b"\n")

    async def discard(self, pid: int) -> None:
        """End a process that no handle names."""
        child = self._children[pid]
        child.kill()
        await asyncio.to_thread(child.wait)
        self.reap(pid)

    def reap(self, pid: int) -> int | None:
        """Return the exit status of a child that is dead; None: it is no child."""
        child = self._children.pop(pid, None)
        if child is None:
            return None
        _close_pipe(child)
        code = child.wait()
        return code if code >= 0 else 128 - code

    def release(self) -> None:
        """Let go of all: another agent finds them by their names."""
        for child in self._children.values():
            child.returncode = child.poll() or 0
            _close_pipe(child)
        self._children.clear()


def _close_pipe(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        with suppress(BrokenPipeError):
            child.stdin.close()


async def until_answered(where: tuple[str, int], prefix: str) -> None:
    """Return when a server at address and port *where* has answered one request.

    Raises:
        OSError: it closed the connection instead.
    """
    reader, writer = await asyncio.open_connection(*where)
    try:
        writer.write(f"HEAD {prefix} HTTP/1.0\r\n\r\n".encode())
        if not await reader.readline():
            raise ConnectionError("the server closed the connection")
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def until_unlocked(folder: Path) -> None:
    """Return when no process holds the lock of *folder*."""
    try:
        lock = os.open(folder / "lock", os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        while not _can_lock(lock):  # noqa: ASYNC110 - flock cannot be awaited
            await asyncio.sleep(_POLL_SECONDS)
    finally:
        os.close(lock)


def _can_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
