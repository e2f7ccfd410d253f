"""Runs what has to succeed before a server may begin, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence


def insist(check: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run this Python with *check* and *environment*; end with its status if it fails.

    What it uses of a GPU goes with it: the server begins with nothing of that.
    """
    done = subprocess.run(
        [sys.executable, *check],
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
        check=False,
    )
    if done.returncode:
        sys.exit(done.returncode)
