"""Processes that outlive the agent: named so that a reused pid is never mistaken.

A pid alone says nothing after a restart.  With the time of its start and the boot of
the machine it names one process for ever.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


_POLL_SECONDS = 0.5
"""Between two looks at a process where the system cannot tell of its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessName:
    """One process, once and for all."""

    pid: int
    started: str
    boot: str

    def as_data(self) -> dict[str, Any]:
        """Return the form that a handle stores."""
        return {"pid": self.pid, "started": self.started, "boot": self.boot}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> ProcessName:
        """Return the process that a handle names."""
        return cls(pid=data["pid"], started=data["started"], boot=data["boot"])


@cache
def boot_id() -> str:
    """Return what changes with each start of the machine, and only then."""
    with suppress(OSError):
        path = Path("/proc/sys/kernel/random/boot_id")
        return path.read_text(encoding="ascii").strip()
    if sys.platform == "darwin":
        asked = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
        if asked.returncode == 0 and asked.stdout.strip():
            return asked.stdout.strip()
    import psutil  # noqa: PLC0415 - costs memory, and hardly any system comes here

    return str(int(psutil.boot_time()))


def name_of(pid: int) -> ProcessName | None:
    """Return the name of the process that has *pid* now; None: there is none."""
    started = _start_of(pid)
    if started is None:
        return None
    return ProcessName(pid=pid, started=started, boot=boot_id())


def is_alive(process: ProcessName) -> bool:
    """Return whether exactly this process still runs; a dead child does not."""
    return process.boot == boot_id() and _start_of(process.pid) == process.started


def send_signal(process: ProcessName, number: signal.Signals) -> None:
    """Send a signal to exactly this process, if it still runs."""
    descriptor = _pidfd(process)
    if descriptor is not None:
        try:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
    elif is_alive(process):
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


async def until_gone(process: ProcessName) -> None:
    """Return when this process runs no more; costs nothing meanwhile on Linux."""
    descriptor = _pidfd(process)
    if descriptor is None:
        while is_alive(process):  # noqa: ASYNC110 - nothing could set an event
            await asyncio.sleep(_POLL_SECONDS)
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    try:
        loop.add_reader(descriptor, gone.set)
        await gone.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _pidfd(process: ProcessName) -> int | None:
    """Return a descriptor of this process; None: it is gone, or not on this system."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return None
    # Only now is it certain that the pid cannot change hands any more.
    if is_alive(process):
        return descriptor
    os.close(descriptor)
    return None


def _start_of(pid: int) -> str | None:
    if sys.platform == "linux":
        try:
            text = Path(f"/proc/{pid}/stat").read_text(
                encoding="utf-8", errors="replace"
            )
        except OSError:
            return None
        # The name in parentheses may itself contain spaces and parentheses.
        fields = text.rpartition(")")[2].split()
        state, threads, started = fields[0], int(fields[17]), fields[19]
        # The first thread may be gone while others still run, or still end: nobody
        # can be told the exit code before the last of them is gone.
        return None if state in {"Z", "X"} and threads <= 1 else started
    import psutil  # noqa: PLC0415 - Linux does without it, and it costs memory

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return repr(process.create_time())
    except psutil.Error:
        return None
