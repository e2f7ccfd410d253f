"""A stand-in for the tool of macOS: it runs the child, and keeps what it was given.

It takes the same command line as the real one, becomes the child as the real one does,
and enforces nothing.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


_PROGRAM = """#!{python}
import json, os, sys
flag, profile, *child = sys.argv[1:]
assert flag == "-f", sys.argv
with open(profile) as file:
    text = file.read()
given = {{
    "argv": child,
    "environment": dict(os.environ),
    "directory": os.getcwd(),
    "profile": text,
    "pid": os.getpid(),
    "group": os.getpgrp(),
    "session": os.getsid(0),
}}
kept = {folder!r} + f"/{{os.getpid()}}.json"
with open(kept + ".part", "w") as file:
    json.dump(given, file)
os.replace(kept + ".part", kept)
{more}
os.execv(child[0], child)
"""


@dataclass(frozen=True, slots=True)
class FakeSandboxExec:
    """The program, and the runs that it kept."""

    program: Path
    folder: Path

    @classmethod
    def make(cls, base: Path, *, more: str = "") -> Self:
        """Write the program below *base*; it does *more* before it becomes the child."""
        folder = base / "sandbox-exec-runs"
        folder.mkdir()
        program = base / "sandbox-exec"
        program.write_text(
            _PROGRAM.format(
                python=f"{sys.executable} -I", folder=str(folder), more=more
            )
        )
        program.chmod(0o755)
        return cls(program, folder)

    def runs(self) -> list[dict[str, Any]]:
        """Return what it was given, the oldest run first; one half written is to come."""
        kept = sorted(
            self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns
        )
        return [json.loads(path.read_text()) for path in kept]
