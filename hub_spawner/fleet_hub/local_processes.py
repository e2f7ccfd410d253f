"""The processes of a local run: started together, ended together, none left behind.

Each child leads a session of its own, so that a Ctrl-C in the terminal reaches only
us and the order of the end is ours.  On Linux the kernel tells the children when we
are killed, and gives us what they leave behind; elsewhere, and after a power cut, the
next run finds them by what this one wrote down.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil

from fleet_hub.places import write_private


_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
KILL_SECONDS: Final = 5.0


def adopt_orphans() -> None:
    """Become the parent of whatever our children leave behind, where that exists."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _told_of_our_end(parent: int) -> Callable[[], None]:
    """Return what a child does before it becomes the program."""
    libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None

    def prepare() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

    return prepare


class Child:
    """One program of the run, with its log."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path | None,
        environment: Mapping[str, str],
        stop_seconds: float,
    ) -> None:
        """Describe it; *log* None lets it write to the terminal."""
        self.name = name
        self.log = log
        self._command = list(command)
        self._environment = dict(environment)
        self._stop_seconds = stop_seconds
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id, once it was started."""
        return self._process.pid if self._process else None

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs, or before it was started."""
        return self._process.poll() if self._process else None

    def start(self) -> None:
        """Start it, again if need be."""
        output = self.log.open("ab") if self.log else None
        try:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT if output else None,
                start_new_session=True,
                preexec_fn=_told_of_our_end(os.getpid()),  # noqa: PLW1509 - this process has one thread
            )
        finally:
            if output:
                output.close()

    def tell_to_end(self) -> None:
        """Tell it to end, and do not wait for that."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def stop(self) -> bool:
        """End it, by force after its time is up; whether it went by itself."""
        process = self._process
        if process is None or process.poll() is not None:
            return True
        self.tell_to_end()
        try:
            process.wait(self._stop_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return False
        return True

    def last_lines(self, count: int = 15) -> str:
        """Return the end of its log."""
        if self.log is None or not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])


class RunRecord:
    """What a run writes down about its processes, for the run after a crash."""

    def __init__(self, path: Path) -> None:
        """Keep the record in *path*."""
        self._path = path

    def write(self, pids: Iterable[int]) -> None:
        """Note these processes with their start times: process ids are reused."""
        entries = []
        for pid in pids:
            with suppress(psutil.Error):
                entries.append([pid, psutil.Process(pid).create_time()])
        write_private(self._path, json.dumps(entries))

    def clear(self) -> None:
        """Forget them: all have ended."""
        self._path.unlink(missing_ok=True)

    def still_there(self) -> list[psutil.Process]:
        """Return the noted processes that still run, with their descendants."""
        try:
            entries: list[Any] = json.loads(self._path.read_text())
            noted = [(int(pid), float(begun)) for pid, begun in entries]
        except (OSError, ValueError, TypeError):
            return []
        found: list[psutil.Process] = []
        for pid, begun in noted:
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                if process.create_time() == begun:
                    found += [process, *process.children(recursive=True)]
        return found


def proxy_left_behind(pid_file: Path) -> list[psutil.Process]:
    """Return the proxy that a killed Hub left running, if it still does."""
    with suppress(OSError, ValueError, psutil.Error):
        process = psutil.Process(int(pid_file.read_text().split()[0]))
        if any("configurable-http-proxy" in part for part in process.cmdline()):
            return [process, *process.children(recursive=True)]
    return []


def end_all(processes: Sequence[psutil.Process], *, patience_seconds: float) -> None:
    """Wait for *processes* to end, ask them to, and kill what does not."""
    _, alive = psutil.wait_procs(processes, timeout=patience_seconds)
    for verb in ("terminate", "kill"):
        for process in alive:
            with suppress(psutil.Error):
                getattr(process, verb)()
        _, alive = psutil.wait_procs(alive, timeout=KILL_SECONDS)


def reap_orphans(children: Iterable[Child]) -> None:
    """Collect the exit statuses of adopted processes, so that none stays a zombie.

    Those of our own *children* are left to themselves.
    """
    if not sys.platform.startswith("linux"):
        return
    own = {child.pid for child in children}
    look = os.WEXITED | os.WNOHANG | os.WNOWAIT
    with suppress(ChildProcessError):
        while (ended := os.waitid(os.P_ALL, 0, look)) and ended.si_pid not in own:
            os.waitpid(ended.si_pid, 0)


def end_orphans() -> None:
    """End every descendant of this process."""
    end_all(psutil.Process().children(recursive=True), patience_seconds=0)
