"""Running ``jupyter-fleet`` against a service of the tests, as a person does."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from fleet_service import Service

from fleet_hub.cli import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command printed, and how it ended."""

    status: int
    out: str
    err: str


async def jupyter_fleet(
    service: Service | None, *arguments: str, columns: int = 100
) -> Ran:
    """Run the command beside the test; with a service, on its data folder.

    It is what the program runs once its imports are done: those take longer than
    everything else.
    """
    return await asyncio.to_thread(_run, _words(service, arguments), columns)


async def jupyter_fleet_process(service: Service | None, *arguments: str) -> Ran:
    """Run the command as a process of its own, imports included."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "fleet_hub.cli", *_words(service, arguments)],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "COLUMNS": "100", "PYTHONUTF8": "1"},
        timeout=60,
        check=False,
    )
    return Ran(status=done.returncode, out=done.stdout, err=done.stderr)


def _words(service: Service | None, arguments: Sequence[str]) -> list[str]:
    place = ["--data-dir", str(service.folder / "data")] if service else []
    return [*arguments, *place]


def _run(words: list[str], columns: int) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, {"COLUMNS": str(columns)}),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        status = main(words)
    return Ran(status=status, out=out.getvalue(), err=err.getvalue())
