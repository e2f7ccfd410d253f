"""What runs right now, read safely: any process may be just ending."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import psutil


def command_line(process: psutil.Process) -> str:
    """Return the command line of *process*, or "" if it has ended."""
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def running_of(processes: Iterable[psutil.Process]) -> list[str]:
    """Return the command lines of those that still run."""
    return [line for line in map(command_line, processes) if line]
