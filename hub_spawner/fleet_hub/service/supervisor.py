"""Keeps one controller running: restarts it at once, and dies with the Hub.

The Hub looks after its services every 30 seconds only, and a service outlives a Hub
that was killed.  So the managed command is this small process: the kernel kills it
when the Hub dies, and the controller when it dies.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Final


_PR_SET_PDEATHSIG: Final = 1
FATAL_EXIT: Final = 3
"""The controller's own exit status for what a restart cannot mend."""
FAST_SECONDS: Final = 5.0
"""A controller that lived longer than this is restarted without a pause."""
PAUSES_SECONDS: Final = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)
STOP_SECONDS: Final = 10.0


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when *parent* ends; exit if it has already.

    Elsewhere than on Linux nothing of the kind exists: the store's lock is what keeps
    a second controller from writing.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        sys.exit(1)


class Supervisor:
    """Runs one command for as long as it is wanted."""

    def __init__(self, command: Sequence[str]) -> None:
        """Run *command*, to which the supervisor's own process id is added."""
        self._command = [*command, f"--parent={os.getpid()}"]
        self._child: subprocess.Popen[bytes] | None = None
        self._ending = False
        self._quick_ends = 0

    def run(self) -> int:
        """Return the exit status once the command has ended for good."""
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, self._end)
        while True:
            begun = time.monotonic()
            # In a session of its own, so that a Ctrl-C in the terminal reaches it
            # once, through us.
            self._child = subprocess.Popen(self._command, start_new_session=True)
            if self._ending:
                self._child.terminate()
            status = self._child.wait()
            if self._ending or status in {0, FATAL_EXIT}:
                return 0 if self._ending else status
            lived = time.monotonic() - begun
            self._quick_ends = 0 if lived > FAST_SECONDS else self._quick_ends + 1
            pause = PAUSES_SECONDS[min(self._quick_ends, len(PAUSES_SECONDS) - 1)]
            sys.stderr.write(
                f"fleet controller ended with status {status}; restarting\n"
            )
            sys.stderr.flush()
            self._pause(pause)
            if self._ending:
                return 0

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._ending and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))

    def _end(self, signum: int, frame: FrameType | None) -> None:
        """Pass the wish on; kill what does not follow it."""
        self._ending = True
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()
            signal.signal(signal.SIGALRM, self._kill)
            signal.setitimer(signal.ITIMER_REAL, STOP_SECONDS)

    def _kill(self, signum: int, frame: FrameType | None) -> None:
        if self._child is not None and self._child.poll() is None:
            self._child.kill()


def main(argv: Sequence[str] | None = None) -> int:
    """Supervise the controller; the managed service's command."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    die_with_parent(os.getppid())
    command = [sys.executable, "-m", "fleet_hub.service.application", *arguments]
    return Supervisor(command).run()
