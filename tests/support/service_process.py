"""The process of a controller, forked with its imports done or as the Hub runs it."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fleet_hub.service import supervisor


_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["service_process", "fleet_hub.service.application"])


def _be_the_service(
    environment: dict[str, str], folder: Path, log: Path, arguments: Sequence[str]
) -> None:
    """Become what ``python -m fleet_hub.service`` is, imports apart."""
    os.environ.clear()
    os.environ.update(environment)
    # The interpreter would have read it at its own start.
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    os.chdir(folder)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.argv[1:] = arguments
    supervisor.main()


class ServiceProcess:
    """A process that was forked with its imports done: the rest is the real thing."""

    def __init__(
        self,
        environment: dict[str, str],
        folder: Path,
        log: Path,
        arguments: Sequence[str] = (),
    ) -> None:
        """Start it."""
        self._process = _FORKS.Process(
            target=_be_the_service, args=(environment, folder, log, tuple(arguments))
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return its exit status, if it has ended."""
        return self._process.exitcode

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def wait(self, limit_seconds: float = 60) -> int:
        """Return its exit status once it has ended."""
        self._process.join(limit_seconds)
        assert self._process.exitcode is not None, "it has not ended"
        return self._process.exitcode


class CommandProcess(ServiceProcess):
    """The command as the Hub runs it, imports included."""

    def __init__(
        self,
        environment: dict[str, str],
        folder: Path,
        log: Path,
        arguments: Sequence[str] = (),
    ) -> None:
        """Start it."""
        with log.open("ab") as out:
            self._command = subprocess.Popen(
                [sys.executable, "-m", "fleet_hub.service", *arguments],
                env=environment,
                cwd=folder,
                stdout=out,
                stderr=out,
            )
        self.pid = self._command.pid

    def poll(self) -> int | None:
        """Return its exit status, if it has ended."""
        return self._command.poll()

    def kill(self) -> None:
        """Kill it."""
        self._command.kill()

    def wait(self, limit_seconds: float = 60) -> int:
        """Return its exit status once it has ended."""
        return self._command.wait(limit_seconds)
