"""Where a copy is while it comes, and what tells an unused copy from a user's folder.

Beside the notebook folders, under names that none of them can have::

    .arriving/<name>   being made; worth nothing
    .arrived/<name>    a mark: the folder <name> is a whole copy that nobody has used yet
    <name>             with that mark: our copy; without it: the user's, never touched

The mark is made before the folder is shown, and goes before its server answers.  So
whatever is killed when, what is without a mark is somebody's files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container
from pathlib import Path

from fleet_agent.drivers.base import NotebookFolder
from fleet_agent.drivers.common.trees import remove_tree
from fleet_agent.ledger_entry import Key


_ARRIVING = ".arriving"
_ARRIVED = ".arrived"


def is_complete(folder: NotebookFolder, key: Key) -> bool:
    """Whether there is nothing to copy: done for *key*, or the folder is in use.

    A copy that was made for another allocation, and never used, is removed.
    """
    if not _is_there(folder.path):
        return False
    mark = _mark(folder)
    try:
        made_for = json.loads(mark.read_text())
    except FileNotFoundError:
        return True
    except ValueError:
        made_for = None
    if made_for == list(key):
        return True
    discard(folder)
    return False


def begin(folder: NotebookFolder) -> Path:
    """Return where to make the copy; nothing is there."""
    path = folder.base / _ARRIVING / folder.name
    _own(folder.base)
    _own(path.parent)
    _remove(path)
    return path


def give_up(folder: NotebookFolder) -> None:
    """Remove what was made so far of a copy."""
    _remove(folder.base / _ARRIVING / folder.name)


def commit(folder: NotebookFolder, key: Key) -> None:
    """Show the whole copy, which is on the disk by then, as *folder*."""
    os.sync()
    mark = _mark(folder)
    _own(mark.parent)
    with mark.open("w") as file:
        json.dump(list(key), file)
        file.flush()
        os.fsync(file.fileno())
    _sync_folder(mark.parent)
    (folder.base / _ARRIVING / folder.name).rename(folder.path)
    _sync_folder(folder.base)


def hand_over(folder: NotebookFolder) -> None:
    """From here on it is the user's folder.  Idempotent."""
    mark = _mark(folder)
    if _is_there(mark):
        mark.unlink()
        _sync_folder(mark.parent)


def discard(folder: NotebookFolder) -> None:
    """Remove a copy that nobody has used; a user's folder stays.  Idempotent."""
    give_up(folder)
    mark = _mark(folder)
    if not _is_there(mark):
        return
    if _is_there(folder.path):
        folder.path.rename(begin(folder))
    mark.unlink()
    give_up(folder)


def tidy(base: Path, held: Container[str]) -> None:
    """Remove what agents left that were killed; *held* names what is still wanted."""
    for path in _inside(base / _ARRIVING):
        _remove(path)
    for mark in _inside(base / _ARRIVED):
        if mark.name not in held:
            discard(NotebookFolder(base=base, name=mark.name, uid=-1, gid=-1))


def _mark(folder: NotebookFolder) -> Path:
    return folder.base / _ARRIVED / folder.name


def _own(path: Path) -> None:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def _inside(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else []


def _is_there(path: Path) -> bool:
    return os.path.lexists(path)


def _remove(path: Path) -> None:
    if _is_there(path):
        remove_tree(path)


def _sync_folder(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
