"""Kill a copy of files before each single thing that it does on the receiving disk.

Run as a script with an empty folder.  For N = 1, 2, … it forks a child that lets a copy
come to ``FOLDER/N/notebooks``, be used, come again for a later start and be given up,
and is killed by SIGKILL just before its N-th deed on the disk; it ends with the first
child that got through.  For each child it prints what had been done by then.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from fleet_agent.copying import places
from fleet_agent.drivers.base import NotebookFolder
from fleet_agent.ledger_entry import Key


FILES = ("first", "second")
USED, GIVEN_UP = "used", "given-up"
EARLIER, KEY = Key("a", 1), Key("a", 2)
_NAMED = frozenset({"os.mkdir", "os.rename", "os.remove", "os.rmdir"})
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def a_folder(base: Path, name: str) -> NotebookFolder:
    """Return where a copy is to come."""
    return NotebookFolder(base=base, name=name, uid=os.geteuid(), gid=os.getegid())


def arrive(folder: NotebookFolder, key: Key) -> None:
    """Let a whole copy come, unless it is there."""
    if places.is_complete(folder, key):
        return
    path = places.begin(folder)
    path.mkdir()
    for name in FILES:
        (path / name).write_text(name)
    places.commit(folder, key)


def _child(base: Path, told: int) -> None:
    used, given_up = (a_folder(base, name) for name in (USED, GIVEN_UP))
    arrive(used, EARLIER)
    arrive(used, KEY)
    places.hand_over(used)
    os.write(told, b"used ")
    (used.path / FILES[0]).write_text("the user's own")
    os.write(told, b"changed ")
    arrive(given_up, KEY)
    places.discard(given_up)
    os.write(told, b"given-up ")


def _arm(fuse: int) -> None:
    left = fuse

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        writes = event == "open" and int(str(arguments[2] or 0)) & _WRITES
        if event in _NAMED or writes:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def main(root: Path) -> None:
    """Kill one child after the other, each a little later."""
    fuse = 0
    while True:
        fuse += 1
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            _arm(fuse)
            _child(root / str(fuse) / "notebooks", writer)
            os._exit(0)
        os.close(writer)
        _, status = os.waitpid(pid, 0)
        with os.fdopen(reader) as told:
            sys.stdout.write(f"{told.read()}\n")
            sys.stdout.flush()
        if not os.WIFSIGNALED(status):
            sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
