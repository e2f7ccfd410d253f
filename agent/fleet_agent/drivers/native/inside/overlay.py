"""Makes the place where the user's own packages go.

The environment is shared and read-only.  Kernels and terminals use a virtual
environment in the notebook folder instead, which sees all of the shared one: what the
user installs there comes first, and stays.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path


_PIP = """#!/bin/sh
exec {python} -m pip "$@"
"""


def location(home: Path) -> Path:
    """Return where the overlay of this Python version is."""
    major, minor = sys.version_info[:2]
    return home / ".fleet" / f"python{major}.{minor}"


def make(home: Path, environment: Path) -> Path:
    """Make the overlay in *home* over *environment*, or what is missing of it.

    What the user has installed is left alone.  Returns its folder.
    """
    overlay = location(home)
    major, minor = sys.version_info[:2]
    library = Path("lib") / f"python{major}.{minor}" / "site-packages"
    python = overlay / "bin" / "python"
    for folder in (python.parent, overlay / library):
        folder.mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3", f"python{major}.{minor}"):
        _link(overlay / "bin" / name, environment / "bin" / "python")
    _write(
        overlay / "pyvenv.cfg",
        f"home = {Path(sys.base_prefix) / 'bin'}\n"
        "include-system-site-packages = false\n"
        f"version = {major}.{minor}.{sys.version_info[2]}\n",
    )
    _write(overlay / library / "_fleet_environment.pth", f"{environment / library}\n")
    for name in ("pip", "pip3"):
        if not (overlay / "bin" / name).exists():
            _write(overlay / "bin" / name, _PIP.format(python=python))
            (overlay / "bin" / name).chmod(0o755)
    _write_kernel(overlay, python, environment)
    return overlay


def _write_kernel(overlay: Path, python: Path, environment: Path) -> None:
    folder = Path("share") / "jupyter" / "kernels" / "python3"
    kernel = overlay / folder
    kernel.mkdir(parents=True, exist_ok=True)
    arguments = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    description = {
        "argv": arguments,
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "metadata": {"debugger": True},
    }
    _write(kernel / "kernel.json", json.dumps(description, indent=1))
    # This kernel hides the environment's own, so its pictures must be here as well.
    for logo in sorted((environment / folder).glob("logo-*")):
        _write(kernel / logo.name, logo.read_bytes())


def _link(path: Path, target: Path) -> None:
    if not path.is_symlink() or path.readlink() != target:
        path.unlink(missing_ok=True)
        path.symlink_to(target)


def _write(path: Path, content: str | bytes) -> None:
    data = content.encode() if isinstance(content, str) else content
    with suppress(FileNotFoundError):
        if path.read_bytes() == data:
            return
    path.write_bytes(data)
