"""A command that runs a whole fleet, from its start to its last process."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import fleet
import psutil
from command_lines import command_line, running_of
from patience import PATIENCE


_UP_SECONDS = 2 * PATIENCE


class Run:
    """One command, with a data folder of its own."""

    def __init__(self, folder: Path, port: int, *words: str) -> None:
        """Prepare ``jupyter-fleet`` with *words*; nothing is started yet."""
        self.words = words
        self.folder = folder
        self.port = port
        self.log = folder / "run.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.family: list[psutil.Process] = []

    def start(self) -> None:
        """Start it, without waiting."""
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "fleet_hub.cli", *self.words),
                    *("--data-dir", str(self.folder / "data")),
                    *("--port", str(self.port)),
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_and_wait(self) -> str:
        """Start it; return what it told once it is up."""
        self.start()
        fleet.wait_until(
            lambda: "Ctrl-C" in self.told() or self.has_ended(),
            f"the run is up; see {self.log}",
            patience=_UP_SECONDS,
        )
        assert "Ctrl-C" in self.told(), self.told()
        self.family = self.descendants()
        return self.told()

    def told(self) -> str:
        """Return all that it wrote."""
        return self.log.read_text()

    def has_ended(self) -> bool:
        """Whether it ended."""
        assert self.process is not None
        return self.process.poll() is not None

    def descendants(self) -> list[psutil.Process]:
        """Return every process that it started, directly or not."""
        assert self.process is not None
        return psutil.Process(self.process.pid).children(recursive=True)

    def part(self, argument: str) -> psutil.Process:
        """Return the first process that has *argument*, or a path that ends so."""
        return next(
            process
            for process in self.descendants()
            if any(each.endswith(argument) for each in command_line(process).split())
        )

    def end(self, number: int = signal.SIGINT) -> int:
        """Send a signal; return the exit status."""
        assert self.process is not None
        self.family = [*self.family, *self.descendants()]
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def still_alive(self) -> list[str]:
        """Return what of the run is still there."""
        return running_of(self.family)

    def close(self) -> None:
        """Leave nothing behind, whatever the test did."""
        if self.process is not None and self.process.poll() is None:
            with suppress(psutil.Error):
                self.family += self.descendants()
            self.process.kill()
            self.process.wait()
        for process in self.family:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(self.family, timeout=PATIENCE)
