"""Letting a process end as soon as it has nothing left to do."""

from __future__ import annotations

import atexit
import gc


def end_quickly() -> None:
    """Spare this process the search for garbage at its end.

    Python looks through everything that was imported before it lets a process go: 0.6 s
    for JupyterHub on an idle machine, and a user who pressed Ctrl-C waits for it.
    """
    atexit.register(gc.freeze)
