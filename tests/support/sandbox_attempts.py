"""Runs in a kernel inside the sandbox, and tries what must not be possible.

Sent as source; prints one JSON document of what happened.  ``FACTS`` stands before it.
"""

# It is as bare as what a user would try.
# ruff: noqa: PTH110, PTH118, PTH123, PTH108, PTH207, PTH119, PTH116, PTH115, PTH208, T201

from __future__ import annotations

import ctypes
import errno
import glob
import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any


FACTS: dict[str, Any] = globals().get("FACTS", {})


def attempt(action: Any, *arguments: Any) -> str:
    """Return "done", or the name of the error that stopped it."""
    try:
        action(*arguments)
    except OSError as error:
        return errno_name(error)
    return "done"


def errno_name(error: OSError) -> str:
    """Return the symbolic name of an error."""
    return errno.errorcode.get(error.errno or 0, str(error))


def connect(address: Any) -> None:
    """Connect to a Unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(address)


def write_into(folder: str) -> None:
    """Make a file."""
    path = os.path.join(folder, "written-by-a-test")
    with open(path, "w") as file:
        file.write("x")
    os.unlink(path)


def environments() -> str:
    """Return every process environment that can be read."""
    texts = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                texts.append(file.read())
        except OSError:
            continue
    return b" ".join(texts).decode(errors="replace")


def users() -> dict[str, int]:
    """Return the uid of every visible process."""
    found = {}
    for path in glob.glob("/proc/[0-9]*"):
        found[os.path.basename(path)] = os.stat(path).st_uid
    return found


def folders() -> list[str]:
    """Return all folders near the root, so that no writable one is forgotten."""
    found = ["/"]
    for folder, below, _ in os.walk("/"):
        if folder.count("/") > 2 or folder.startswith("/proc"):
            below.clear()
        found += [os.path.join(folder, name) for name in below]
    return [path for path in found if not path.startswith("/proc/")]


def status() -> dict[str, str]:
    """Return the kernel's word on this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def descriptors() -> list[str]:
    """Return what the notebook server, our parent, has open on disk."""
    found = []
    for path in glob.glob(f"/proc/{os.getppid()}/fd/*"):
        try:
            found.append(os.readlink(path))
        except OSError:
            continue
    return found


def mount() -> None:
    """Mount something."""
    if ctypes.CDLL(None, use_errno=True).mount(b"x", b"/tmp", b"tmpfs", 0, None):
        raise OSError(ctypes.get_errno(), "mount")


result = {
    "read": {path: attempt(lambda p: open(p).close(), path) for path in FACTS["read"]},
    "list": {path: attempt(os.listdir, path) for path in FACTS["list"]},
    "connect": {path: attempt(connect, path) for path in FACTS["connect"]},
    "abstract": attempt(connect, "\0" + FACTS["abstract"]),
    "writable": [path for path in folders() if attempt(write_into, path) == "done"],
    "environments": environments(),
    "users": users(),
    "uid": os.getuid(),
    "groups": os.getgroups(),
    "status": status(),
    "become_root": attempt(os.setuid, 0),
    "become_group": attempt(os.setgroups, [0]),
    "mount": attempt(mount),
    "chroot": attempt(os.chroot, "/tmp"),
    "kill_first": attempt(os.kill, 1, signal.SIGKILL),
    "trace_first": attempt(lambda: open("/proc/1/mem", "rb").close()),
    "su": subprocess.run(
        ["su", "-c", "id -u"], input=b"", capture_output=True, check=False
    ).stdout.decode(),
    "host_pids": [
        pid for pid in FACTS["pids"] if os.path.exists(f"/proc/{pid}/environ")
    ],
    "devices": sorted(os.listdir("/dev")),
    "cuda": os.environ.get("CUDA_VISIBLE_DEVICES"),
    "variables": sorted(os.environ),
    "descriptors": descriptors(),
    "root_of_first": attempt(os.listdir, "/proc/1/root/root"),
    "homes": sorted(os.listdir("/root")) if os.path.exists("/root") else [],
}
print(json.dumps(result))
