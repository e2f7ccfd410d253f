"""Which Python does an environment stand on, and what must a sandbox see of it?"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from fleet_agent.drivers.base import DriverError
from fleet_contracts.reasons import Reason


_QUESTION = """
import json, os, sys, sysconfig
print(json.dumps({
    "executable": os.path.realpath(sys.executable),
    "prefix": sys.base_prefix,
    "version": sys.version,
    "minor": "%d.%d" % sys.version_info[:2],
    "platform": sysconfig.get_platform(),
    "soabi": sysconfig.get_config_var("SOABI"),
}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python installation, as it describes itself."""

    executable: str
    prefix: str
    """Where its library is: a sandbox shows it at this very path, because a shared
    libpython is found by an absolute path, and another one would be taken silently."""
    version: str
    minor: str
    platform: str
    soabi: str | None


def own_interpreter() -> Path:
    """Return the Python that the agent's own virtual environment was made from."""
    return Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))


async def describe(executable: Path) -> Interpreter:
    """Ask the Python at *executable* what it is.

    Raises:
        DriverError: it does not run.
    """
    complaint = b""
    try:
        process = await asyncio.create_subprocess_exec(
            executable,
            "-I",
            "-c",
            _QUESTION,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={},
        )
        output, complaint = await process.communicate()
        return Interpreter(**json.loads(output))
    except (OSError, ValueError) as error:
        said = complaint.decode(errors="replace")[-500:]
        raise DriverError(
            Reason.PREPARE_FAILED,
            f"the interpreter {executable} does not answer: {error} {said}",
            detail="The Python that notebooks need does not work on this machine.",
        ) from error
