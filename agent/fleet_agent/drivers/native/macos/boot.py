"""A copy of the modules that run inside: the agent's own folder stays closed."""

from __future__ import annotations

import hashlib
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from fleet_agent.drivers.native import inside


PACKAGE = "fleet_agent/drivers/native/inside"


def collect(base: Path) -> None:
    """Remove the copies of other versions; to be called while nothing runs from them."""
    if not base.is_dir():
        return
    wanted = boot_folder(base)
    for path in base.iterdir():
        if path != wanted:
            shutil.rmtree(path, ignore_errors=True)


def boot_folder(base: Path) -> Path:
    """Return a folder below *base* to put on Python's path; made if it is not there.

    It is named by what it holds, so an agent of another version has its own.
    """
    source = Path(inside.__file__).parent
    files = sorted(source.glob("*.py"))
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    folder = base / digest.hexdigest()[:24]
    if folder.is_dir():
        return folder
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = Path(mkdtemp(prefix=".part-", dir=base))
    target = part / PACKAGE
    target.mkdir(parents=True)
    for path in files:
        shutil.copyfile(path, target / path.name)
    # Another agent of this folder was faster, with the same files.
    with suppress(FileExistsError, OSError):
        part.rename(folder)
    shutil.rmtree(part, ignore_errors=True)
    return folder
