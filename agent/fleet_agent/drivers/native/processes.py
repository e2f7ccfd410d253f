"""Is that process still the one we started, and when does it end?

A pid alone proves nothing: it is reused, and after a reboot it means somebody else.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STARTED_FIELD = 19
"""Of /proc/PID/stat, counted behind the command's name."""
_PARENT_FIELD = 1


def boot_id() -> str:
    """Return what identifies the time since the machine last started."""
    return _BOOT_ID.read_text().strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """A process, told apart from later ones with the same pid on the same boot."""

    pid: int
    started: int
    """In clock ticks since the boot."""


def identify(pid: int) -> ProcessId | None:
    """Return the identity of the process that has *pid* now; None: there is none."""
    fields = _stat(pid)
    if fields is None:
        return None
    return ProcessId(pid=pid, started=int(fields[_STARTED_FIELD]))


def children(pid: int) -> list[int]:
    """Return the pids of the children of *pid*, the oldest first."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields is not None and int(fields[_PARENT_FIELD]) == pid:
                found.append((int(fields[_STARTED_FIELD]), int(entry.name)))
    return [child for _, child in sorted(found)]


def pid_namespace(pid: int) -> int | None:
    """Return the number of the pid namespace that *pid* lives in."""
    try:
        return Path(f"/proc/{pid}/ns/pid").stat().st_ino
    except OSError:
        return None


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name may hold spaces and parentheses: count from behind it.
    return text[text.rindex(")") + 2 :].split()


class Process:
    """A process held by a pidfd: it cannot be mistaken for another one any more."""

    def __init__(self, fd: int, identity: ProcessId) -> None:
        """Own *fd*."""
        self._fd = fd
        self.identity = identity

    @classmethod
    def open(cls, identity: ProcessId) -> Self | None:
        """Hold the process *identity*; None: it is gone."""
        try:
            fd = os.pidfd_open(identity.pid)
        except ProcessLookupError:
            return None
        process = cls(fd, identity)
        # Looked at while the pidfd is held, the pid cannot change hands meanwhile.
        if identify(identity.pid) != identity or not process.is_alive:
            process.close()
            return None
        return process

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended; a zombie has."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return not poll.poll(0)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; nothing happens when it has ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, number)

    async def ended(self) -> None:
        """Return when it has ended."""
        loop = asyncio.get_running_loop()
        gone = asyncio.Event()
        # A duplicate, because a loop has one reader for each descriptor.
        fd = os.dup(self._fd)
        loop.add_reader(fd, gone.set)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(fd)
            os.close(fd)

    def close(self) -> None:
        """Let go of it; it is not touched."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
