"""Closes the abstract Unix sockets of the machine to this process and its children.

They belong to the network namespace, which a notebook shares with the machine, so no
mount hides them.
"""

from __future__ import annotations

import ctypes
import os
import sys


_CREATE_RULESET = 444
_RESTRICT_SELF = 446
_GET_VERSION = 1
_SCOPING_SINCE = 6
_SCOPE_ABSTRACT_UNIX_SOCKET = 1
_SCOPE_SIGNAL = 2


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


def version() -> int:
    """Return the kernel's Landlock version; 0: it has none."""
    if sys.platform != "linux":
        return 0  # the numbers below mean other system calls there
    return max(_system_call(_CREATE_RULESET, None, ctypes.c_size_t(0), _GET_VERSION), 0)


def can_scope() -> bool:
    """Return whether this kernel can close abstract sockets."""
    return version() >= _SCOPING_SINCE


def close_foreign_sockets() -> bool:
    """Forbid abstract sockets and signals across the sandbox's border, for good.

    To be called before any thread is started: it holds for the caller and what it
    starts.  Returns whether the kernel can.

    Raises:
        OSError: the kernel says that it can, and did not.
    """
    if not can_scope():
        return False
    attributes = _RulesetAttributes(scoped=_SCOPE_ABSTRACT_UNIX_SOCKET | _SCOPE_SIGNAL)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    ruleset = _system_call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "no Landlock ruleset could be made")
    try:
        if _system_call(_RESTRICT_SELF, ruleset, 0) != 0:
            raise OSError(ctypes.get_errno(), "Landlock could not be enforced")
    finally:
        os.close(ruleset)
    return True


def _system_call(number: int, *arguments: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    result: int = library.syscall(number, *arguments)
    return result
