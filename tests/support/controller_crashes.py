"""Kill a controller in the middle of a burst, before and after each of its commits.

Run as a script with an empty folder.  For N = 1, 2, … it forks a child that carries
out ``burst`` on a store in ``FOLDER/N`` and is killed by SIGKILL as its N-th
transaction begins or is about to be committed; it ends with the first child that got
through.  Beside each store stands ``told``: what the world outside had seen by then.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fake_agent import FakeAgent
from fleet_controller import Fleet, allocation_of
from typing_extensions import override

from fleet_contracts.protocol import AgentEvent, Heartbeat, encode
from fleet_hub.adapters.sqlite_store import SqliteStore
from fleet_hub.controller import enrolling, stopping
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.ticking import tick


CORES = {"large": 4, "small": 2}
SERVERS = range(1, 10)
HOUR = 3600


class Journal:
    """What the world outside has seen, durable before it goes on."""

    def __init__(self, path: Path) -> None:
        """Write to *path*."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(self, **seen: Any) -> None:
        """Note one thing."""
        os.write(self._file, json.dumps(seen).encode() + b"\n")


class JournaledAgent(FakeAgent):
    """An agent whose ledger outlives this process."""

    journal: Journal

    @override
    def send(self, text: str) -> None:
        super().send(text)
        self.tell()

    @override
    def say(self, message: Any) -> None:
        self.tell()
        super().say(message)

    def tell(self) -> None:
        """Note what it was told to run, and what it has done of that."""
        self.journal.tell(
            machine=self.machine,
            launched=[encode(launch) for launch in self.launched.values()],
            ledger=[item.model_dump(mode="json") for item in self.ledger.values()],
            ended=sorted(self.ended),
            highest_epoch=self.highest_epoch,
        )


def burst(folder: Path) -> None:
    """Nine ask at once for six cores; some end, and the clock is set to and fro."""
    journal = Journal(folder / "told")
    fleet = Fleet(SqliteStore.open(folder / "controller.sqlite"))
    for name, cores in CORES.items():
        enrolling.enrol(fleet.core, name=name, owner="alice", local=True)
        agent = JournaledAgent(fleet.core, fleet.registry, name)
        agent.journal = journal
        fleet.agents[name] = agent
        agent.connect(cores=cores)
        journal.tell(enrolled=name)
    fleet.cycle()
    for server in SERVERS:
        record = fleet.ask(server)
        journal.tell(asked=server)
        if server % 3 == 0:
            _serve(fleet)
        if server == 5:
            fleet.clock.advance(HOUR)
            tick(fleet.core)
        if server == 7:
            fleet.clock.advance(-2 * HOUR)
            tick(fleet.core)
            _end(fleet, 1)
    stopping.stop(fleet.core, fleet.get(record))
    _serve(fleet)
    _end(fleet, 2)
    fleet.clock.advance(HOUR)
    tick(fleet.core)
    while run_cycle(fleet.core).is_unfinished:
        pass


def _serve(fleet: Fleet) -> None:
    for agent in fleet.agents.values():
        for allocation in agent.launched.keys() - agent.ledger.keys() - agent.ended:
            agent.serve(allocation)
        agent.say(Heartbeat(sent_at=fleet.clock.now()))


def _end(fleet: Fleet, server: int) -> None:
    (record,) = (
        it for it in fleet.core.model.workloads.values() if it.key.server_id == server
    )
    if record.assignment is None:
        return
    agent = fleet.agents[record.assignment.machine]
    stopping.stop(fleet.core, record)
    agent.report(allocation_of(record), AgentEvent.ENDED)
    fleet.cycle()


def _arm(fuse: int) -> None:
    """Kill this process as its *fuse*-th transaction begins or is to be committed."""
    left = fuse

    def burn(statement: str) -> None:
        nonlocal left
        if statement.split(maxsplit=1)[0] in {"BEGIN", "COMMIT"}:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    connect = sqlite3.connect

    def traced(*arguments: object, **options: object) -> sqlite3.Connection:
        connection = connect(*arguments, **options)  # type: ignore[call-overload]
        connection.set_trace_callback(burn)
        return connection  # type: ignore[no-any-return]

    sqlite3.connect = traced  # type: ignore[assignment]


def kill_each(root: Path, work: Callable[[Path], None] = burst) -> None:
    """Kill one child after the other in the middle of *work*, each a little later."""
    fuse = 0
    while True:
        fuse += 1
        folder = root / str(fuse)
        folder.mkdir()
        pid = os.fork()
        if pid == 0:
            _arm(fuse)
            work(folder)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    kill_each(Path(sys.argv[1]))
