"""Run the agent's commands, each in a fork, and kill some before their N-th deed.

Run as a script: for each line of JSON on its standard input, ``{"fuse", "folder",
"argv"}``, it answers one, ``{"status", "complained"}``.  A deed is a connection, or what
makes, opens for writing, renames or removes anything in the folder; fuse 0: no kill.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module
from typing import Any

from fleet_agent.cli import main


_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_NAMED = frozenset({"os.mkdir", "os.rename", "os.remove"})


def _is_deed(event: str, arguments: tuple[Any, ...], folder: str) -> bool:
    if event == "socket.connect":
        return True
    writes = event == "open" and int(arguments[2] or 0) & _WRITES
    if event not in _NAMED and not writes:
        return False
    return any(str(argument).startswith(folder) for argument in arguments)


def _arm(fuse: int, folder: str) -> None:
    """Kill this process just before its *fuse*-th deed."""
    left = fuse

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if _is_deed(event, arguments, folder):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def _run(told: dict[str, Any], complaints: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    os.dup2(complaints, sys.stderr.fileno())
    _arm(told["fuse"], told["folder"])
    os._exit(main(told["argv"]))


def serve() -> None:
    """Carry out what is told, one after the other."""
    for module in ("fleet_agent.commands.enrol", "fleet_agent.daemon"):
        import_module(module)
    for line in sys.stdin:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            _run(json.loads(line), writer)
        os.close(writer)
        with os.fdopen(reader) as complaints:
            complained = complaints.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        answer = {"status": status, "complained": complained}
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
