"""Keeps one controller running: restarts it at once, and dies with the Hub.

The Hub looks after its services every 30 seconds only, and a service outlives a Hub
that was killed.  So the managed command is this small process: the kernel kills it
when the Hub dies, and the controller when it dies.

The controller is a fork of this process, which has imported everything and started
nothing: it listens again a few hundredths of a second after a crash.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Final, Never


_PR_SET_PDEATHSIG: Final = 1
FATAL_EXIT: Final = 3
"""The controller's own exit status for what a restart cannot mend."""
FAST_SECONDS: Final = 5.0
"""A controller that lived longer than this is restarted without a pause."""
PAUSES_SECONDS: Final = (0.0, 0.0, 0.1, 0.5, 1.0, 2.0, 5.0)
STOP_SECONDS: Final = 10.0
_ENDINGS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    """Runs one function in a process of its own, for as long as it is wanted."""

    def __init__(self, work: Callable[[], object]) -> None:
        """Run *work*, which returns when it was asked to end by a signal."""
        self._work = work
        self._child = 0
        self._ending = False
        self._quick_ends = 0

    def run(self) -> int:
        """Return the exit status once the work has ended for good."""
        for name in _ENDINGS:
            signal.signal(name, self._end)
        signal.signal(signal.SIGALRM, self._kill)
        while not self._ending:
            begun = time.monotonic()
            status = self._run_once()
            if status in {0, FATAL_EXIT}:
                return status
            if self._is_ending():
                break
            lived = time.monotonic() - begun
            self._quick_ends = 0 if lived > FAST_SECONDS else self._quick_ends + 1
            sys.stderr.write(
                f"fleet controller ended with status {status}; restarting\n"
            )
            sys.stderr.flush()
            self._pause(PAUSES_SECONDS[min(self._quick_ends, len(PAUSES_SECONDS) - 1)])
        return 0

    def _run_once(self) -> int:
        """Return how one life of the work ended."""
        parent = os.getpid()
        # A signal between the fork and the note of its result would reach nobody.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)
        child = os.fork()
        if child == 0:
            self._be_the_work(parent)
        self._child = child
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
        _, status = os.waitpid(child, 0)
        self._child = 0
        signal.setitimer(signal.ITIMER_REAL, 0)
        return os.waitstatus_to_exitcode(status)

    def _be_the_work(self, parent: int) -> Never:
        status = 1
        try:
            # A session of its own: a Ctrl-C in the terminal reaches it once, by us.
            os.setsid()
            for name in (*_ENDINGS, signal.SIGALRM):
                signal.signal(name, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
            die_with_parent(parent)
            self._work()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(bool(end.code))
        except BaseException:  # noqa: BLE001 - the last stop of this process
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Never back into the supervisor's frames.
            os._exit(status)

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._ending and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))

    def _is_ending(self) -> bool:
        """Whether a signal has asked for the end, at any moment until now."""
        return self._ending

    def _end(self, signum: int, frame: FrameType | None) -> None:
        """Pass the wish on; kill what does not follow it."""
        self._ending = True
        if self._child:
            os.kill(self._child, signal.SIGTERM)
            signal.setitimer(signal.ITIMER_REAL, STOP_SECONDS)

    def _kill(self, signum: int, frame: FrameType | None) -> None:
        if self._child:
            os.kill(self._child, signal.SIGKILL)


def main() -> Never:
    """Supervise the controller; the managed service's command."""
    die_with_parent(os.getppid())
    # Only now, because it takes its time: everything that the work will need.
    from fleet_hub.service.application import FleetService  # noqa: PLC0415

    status = Supervisor(FleetService.launch_instance).run()
    sys.stdout.flush()
    sys.stderr.flush()
    # The Hub waits for this end: taking apart all that was imported costs a third of a
    # second of it, and does nothing for anybody.
    os._exit(status)
