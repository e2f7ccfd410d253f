"""How is a folder removed that a workload could write to?"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def remove_tree(path: Path) -> None:
    """Remove *path* with all that is in it; symbolic links are never followed.

    Gone already is fine.
    """
    shutil.rmtree(path, onerror=_open_and_try_again)


def _open_and_try_again(
    function: Callable[..., Any], path: str, information: Any
) -> None:
    """Remove what a workload made unreadable in its temp; gone already is fine."""
    if isinstance(information[1], FileNotFoundError):
        return
    parent = os.path.dirname(path)  # noqa: PTH120 - as shutil gives it
    for folder in (parent, path):
        with contextlib.suppress(OSError):
            if os.path.isdir(folder) and not os.path.islink(folder):  # noqa: PTH112, PTH114 - as above
                os.chmod(folder, 0o700)  # noqa: PTH101 - as above
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114 - as above
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108 - as above
