"""Kill a process that works on a ledger before each single thing that it does.

Run as a script with an empty folder.  For N = 1, 2, … it forks a child that carries
out ``SCENARIO`` on a ledger in ``FOLDER/N`` and is killed by SIGKILL just before its
N-th SQL statement, rename or removal; it ends with the first child that got through.
For each child it prints how many steps had returned, one number a line.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from agent_support import a_spec

from fleet_agent.drivers.base import Handle
from fleet_agent.ledger import Ledger
from fleet_agent.ledger_entry import Key, StopIntent
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason


AT = datetime(2026, 11, 1, tzinfo=UTC)
KEY = Key("w1-1", 7)
REFUSED = Key("w2-1", 8)
HANDLE = Handle(allocation="w1-1", data={"pid": 42}, url="http://127.0.0.1:9")

SCENARIO: tuple[Callable[[Ledger], object], ...] = (
    lambda ledger: ledger.open(KEY, AgentEvent.ACCEPTED, at=AT, spec=a_spec()),
    lambda ledger: ledger.report(KEY, AgentEvent.PREPARED, at=AT),
    lambda ledger: ledger.keep_handle(KEY, HANDLE),
    lambda ledger: ledger.report(
        KEY, AgentEvent.SERVING, at=AT, url=HANDLE.url, ends_at=1e9
    ),
    lambda ledger: ledger.acknowledge(KEY, 2, at=AT),
    lambda ledger: ledger.open(
        REFUSED,
        AgentEvent.REJECTED,
        at=AT,
        explanation=Explanation(reason=Reason.CPU_BUSY),
    ),
    lambda ledger: ledger.acknowledge(REFUSED, 1, at=AT),
    lambda ledger: ledger.ask_stop(KEY, StopIntent(now=True), at=AT),
    lambda ledger: ledger.report(KEY, AgentEvent.ENDED, at=AT),
    lambda ledger: ledger.keep_handle(KEY, None),
    lambda ledger: ledger.acknowledge(KEY, 5, at=AT),
    lambda ledger: ledger.forget(KEY, at=AT),
)


def _arm(fuse: int) -> None:
    """Kill this process just before its *fuse*-th statement, rename or removal."""
    left = fuse

    def burn(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_audit(event: str, _: object) -> None:
        if event in {"os.rename", "os.remove", "os.chmod"}:
            burn()

    connect = sqlite3.connect

    def traced(*arguments: object, **options: object) -> sqlite3.Connection:
        connection = connect(*arguments, **options)  # type: ignore[call-overload]
        connection.set_trace_callback(burn)
        return connection  # type: ignore[no-any-return]

    sqlite3.connect = traced  # type: ignore[assignment]
    sys.addaudithook(on_audit)


def _child(folder: Path, fuse: int, told: int) -> None:
    _arm(fuse)
    ledger = Ledger(folder / "ledger.sqlite")
    os.write(told, b"o")
    for step in SCENARIO:
        step(ledger)
        os.write(told, b"s")


def main(root: Path) -> None:
    """Kill one child after the other, each a little later."""
    fuse = 0
    while True:
        fuse += 1
        folder = root / str(fuse)
        folder.mkdir()
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            _child(folder, fuse, writer)
            os._exit(0)
        os.close(writer)
        _, status = os.waitpid(pid, 0)
        with os.fdopen(reader, "rb") as told:
            sys.stdout.write(f"{told.read().count(b's')}\n")
            sys.stdout.flush()
        if not os.WIFSIGNALED(status):
            sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
