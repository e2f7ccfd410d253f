"""Gives back to the system what a burst of work needed, and idling does not."""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache
from typing import Any


def give_back() -> None:
    """Return free memory to the system, where its allocator can; takes milliseconds.

    glibc keeps what was freed for the next burst.  An agent's bursts are minutes
    apart, and its machine is lent for other work.
    """
    trim = _trim()
    if trim is not None:
        gc.collect()
        trim(0)


@cache
def _trim() -> Any:
    if sys.platform != "linux":
        return None
    # Not every C library has it.
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
