"""What can a program in this sandbox reach of the Mac's GPU?

Runs where a notebook would run, and prints one line of JSON with the word that it was
given, so that nothing else that prints is taken for the answer.  It judges nothing.
"""

from __future__ import annotations

import ctypes
import json
import os
from importlib import import_module
from typing import Any


FRAMEWORKS = "/System/Library/Frameworks"


def metal(word: str) -> None:
    """Ask the system itself for its Metal devices: needs no package at all."""
    # Without this one a command line program has no default device to begin with.
    _framework("CoreGraphics")
    foundation, library = _framework("CoreFoundation"), _framework("Metal")
    library.MTLCreateSystemDefaultDevice.restype = ctypes.c_void_p
    library.MTLCopyAllDevices.restype = ctypes.c_void_p
    foundation.CFArrayGetCount.restype = ctypes.c_long
    foundation.CFArrayGetCount.argtypes = [ctypes.c_void_p]
    default = library.MTLCreateSystemDefaultDevice()
    every = library.MTLCopyAllDevices()
    count = foundation.CFArrayGetCount(every) if every else 0
    _say(word, 1, default=bool(default), devices=int(count))


def torch(word: str) -> None:
    """Let torch compute on the GPU, whatever it says beforehand."""
    # Whatever else prints goes elsewhere.
    channel = os.dup(1)
    os.dup2(2, 1)
    module: Any = import_module("torch")
    available = bool(module.backends.mps.is_available())
    try:
        ones = module.ones(2, device="mps")
        computed = float((ones + ones).sum().item()) == 4.0  # noqa: PLR2004 - twice two
    except Exception:  # noqa: BLE001 - whatever it is, nothing was computed
        computed = False
    _say(word, channel, available=available, computed=computed)


def _framework(name: str) -> Any:
    return ctypes.CDLL(f"{FRAMEWORKS}/{name}.framework/{name}")


def _say(word: str, channel: int, **facts: Any) -> None:
    os.write(channel, json.dumps({"word": word, **facts}).encode() + b"\n")
