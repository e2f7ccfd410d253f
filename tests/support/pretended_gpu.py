"""The frameworks of a Mac, as far as a look for its GPU goes; runs in the looking process.

``put_in_place`` gives the process a Metal framework, and torch finds the same GPU.  What
the process meets is a word: ``reached`` and ``nothing`` are what an honest Mac shows, the
others are what may go wrong.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from types import SimpleNamespace
from typing import Any, Final


_STATE: Final = {"meets": "nothing"}


def put_in_place(meets: str) -> None:
    """Let this process meet a GPU, or what *meets* says instead."""
    _STATE["meets"] = meets
    if meets == "chatters":
        sys.stdout.write("objc[1]: Class X is implemented in both\n")
        sys.stdout.flush()
    elif meets == "floods":
        sys.stdout.write("x" * 100_000)
        sys.stdout.flush()
    elif meets == "leaves somebody behind":
        if os.fork() == 0:
            # It has left the group, and holds the pipe open.
            os.setsid()
            threading.Event().wait()
        _STATE["meets"] = "nothing"
    ctypes.CDLL = _framework  # type: ignore[assignment,misc]


def is_there() -> bool:
    """Whether torch finds the GPU; does what goes wrong on the way."""
    meets = _STATE["meets"]
    if meets == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if meets == "hangs":
        threading.Event().wait()
    if meets == "fails":
        raise OSError("the framework is not there")
    return meets == "reached"


def _framework(path: str) -> Any:
    name = path.rpartition("/")[2]
    if name == "Metal":
        found = is_there()
        half = _STATE["meets"] == "half"
        return SimpleNamespace(
            MTLCreateSystemDefaultDevice=_function(4711 if found else None),
            MTLCopyAllDevices=_function(4712 if found or half else None),
        )
    return SimpleNamespace(CFArrayGetCount=_function(1))


def _function(value: int | None) -> Any:
    """Return something that is called, and has types, as a foreign function has."""

    def called(*arguments: object) -> int | None:
        return value

    return called


TORCH: Final = """
import os, sys
sys.path.insert(0, {support!r})
import pretended_gpu

class _Mps:
    @staticmethod
    def is_available():
        print("torch says hello")
        return pretended_gpu.is_there()

class backends:
    mps = _Mps

class _Two:
    def __add__(self, other):
        return self
    def sum(self):
        return self
    def item(self):
        return 4.0

def ones(count, device):
    if not pretended_gpu.is_there():
        raise RuntimeError("The MPS backend is not available")
    return _Two()
"""
"""A torch that computes on the GPU that is there."""

LYING_TORCH: Final = """
import ctypes, json, os, sys
class backends:
    class mps:
        @staticmethod
        def is_available():
            return False
def ones(count, device):
    raise RuntimeError("no such device")
"""
"""A torch that denies what is there."""


def a_cuda(*, status: int = 0, count: int = 1, version: str = "libcuda.so.1") -> str:
    """Return what gives a Python process an NVIDIA driver's library, before its script.

    It knows *count* GPUs, or says *status* when it is woken up.
    """
    return f"""
import ctypes

class _Cuda:
    @staticmethod
    def cuInit(flags):
        return {status}
    @staticmethod
    def cuDeviceGetCount(count):
        count._obj.value = {count}
        return 0

def _library(name, *arguments, **options):
    if name != {version!r}:
        raise OSError(name + ": cannot open shared object file")
    return _Cuda

ctypes.CDLL = _library
"""
