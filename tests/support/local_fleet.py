"""A fleet of one machine as its newcomer starts it: one command, until Ctrl-C."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import psutil
from command_lines import command_line, running_of
from native_fleet import share_downloads
from patience import PATIENCE, free_port
from plain_hub import REPOSITORY


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFleet:
    """What the command told, and its process."""

    url: str
    name: str
    code: str
    data: Path
    process: subprocess.Popen[bytes]

    def press_ctrl_c(self) -> int:
        """Interrupt it as a terminal does; return its exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)

    def processes(self) -> list[psutil.Process]:
        """Return all processes of it that there are, notebooks included."""
        with suppress(psutil.Error):
            own = psutil.Process(self.process.pid)
            return [own, *own.children(recursive=True)]
        return []


def left_over(processes: list[psutil.Process], data: Path) -> list[str]:
    """Return what still runs of *processes*, or names the folder *data*."""
    left = [
        process
        for process in [*processes, *psutil.process_iter()]
        if process in processes or str(data) in command_line(process)
    ]
    return running_of(left)


@contextmanager
def local_fleet(folder: Path) -> Iterator[LocalFleet]:
    """Run ``jupyter-fleet run`` with its data in *folder*, until the block ends.

    Its environments are built anew; only downloads are shared with other tests.
    """
    data = folder / "data"
    for place in (data, data / "agent", data / "agent/native"):
        place.mkdir(mode=0o700)
    share_downloads(data / "agent/native")
    command = [
        *(sys.executable, "-m", "fleet_hub.cli", "run", "--verbose"),
        f"--config={REPOSITORY / 'jupyterhub_config.py'}",
        f"--port={free_port()}",
        f"--data-dir={data}",
        "--owner=ada",
    ]
    with (
        (folder / "run.log").open("wb") as log,
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        assert process.stdout is not None
        told = ""
        try:
            for line in process.stdout:
                log.write(line)
                log.flush()
                told += line.decode(errors="replace")
                if "Press Ctrl-C" in told:
                    break
            else:
                raise AssertionError(f"it ended by itself:\n{told}")
            Thread(
                target=shutil.copyfileobj, args=(process.stdout, log), daemon=True
            ).start()
            yield LocalFleet(
                url=_told(told, "Open"),
                name=_told(told, "Name"),
                code=_told(told, "Code"),
                data=data,
                process=process,
            )
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(PATIENCE)


def _told(text: str, word: str) -> str:
    found = re.search(rf"^ +{word} +(\S+)", text, re.MULTILINE)
    assert found, f"it did not tell {word}:\n{text}"
    return found[1]
