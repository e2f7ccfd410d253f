"""A decision that is on the disk before anybody hears of it, beside a bare commit.

For each size of the fleet a store is filled: every machine is full and a thousand
workloads wait.  Then workloads end one by one, and the controller's whole cycle is
timed: it decides who is next, writes workload, allocation and timeline in one
transaction with ``synchronous=FULL``, and hands the launch to the link.  Beside it two
rows of the same size are committed to a database of the same settings.
"""

from __future__ import annotations

import argparse
import gc
import random
import sqlite3
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from typing_extensions import override

from decisions import CATALOG, CLASSES, USERS, WEIGHTS, a_machine
from figures import keep, quantile
from fleet_contracts.catalog import Relation
from fleet_contracts.protocol import AgentEvent, Goodbye, Launch, Report, ToAgent
from fleet_contracts.workloads import Choice, ServerKey
from fleet_hub.adapters.clock import RandomIds
from fleet_hub.adapters.memory_store import MemoryStore
from fleet_hub.adapters.sqlite_store import SqliteStore
from fleet_hub.admission import Ask
from fleet_hub.controller import asking, reconciling
from fleet_hub.controller.admitting import run_cycle
from fleet_hub.controller.core import Core
from fleet_hub.controller.ports import Change, StartAnswer, StartResult, Store
from fleet_hub.controller.records import MachineRecord
from fleet_hub.controller.retelling import AT_A_TIME, retell
from fleet_hub.controller.settings import Settings
from fleet_hub.service.garbage import Memory


WARMING_EVENTS = 100
BEGAN = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


class SteppingClock:
    """A clock that the benchmark moves."""

    def __init__(self) -> None:
        """Begin at noon."""
        self.moment = BEGAN

    def now(self) -> datetime:
        """Return the moment that the benchmark is at."""
        return self.moment


class Launches:
    """Links to every machine that only count the launches."""

    def __init__(self) -> None:
        """Begin with none."""
        self.count = 0

    def send(self, machine: str, message: ToAgent) -> bool:
        """Take *message*."""
        self.count += isinstance(message, Launch)
        return True

    def dismiss(self, machine: str, goodbye: Goodbye) -> None:
        """Say nothing."""


class NoHub:
    """A Hub that is never asked."""

    async def start_server(self, user: str, server_name: str) -> StartResult:
        """Answer that it is under way."""
        return StartResult(answer=StartAnswer.UNDER_WAY)

    async def check_routes(self) -> bool:
        """Route nothing."""
        return True


class FixedCatalog:
    """The catalog of the benchmark."""

    current = staticmethod(lambda: CATALOG)


def a_core(store: Store, machines: int, chance: random.Random) -> Core:
    """Return a controller over *store* whose machines are all there."""
    core = Core(
        store=store,
        links=Launches(),
        hub=NoHub(),
        clock=SteppingClock(),
        ids=RandomIds(),
        catalogs=FixedCatalog(),
        settings=Settings(recovery_seconds=0),
    )
    with core.transaction() as tx:
        for number in range(machines):
            state = a_machine(number, chance)
            tx.change.machines[state.name] = core.model.machines.get(
                state.name,
                MachineRecord(
                    name=state.name,
                    owner=state.owner,
                    local=True,
                    token_hash=state.name,
                    enrolled_at=BEGAN,
                    admin_allows=Relation.GUEST,
                    owner_allows=Relation.GUEST,
                ),
            )
    for number in range(machines):
        state = a_machine(number, chance)
        presence = core.model.begin_presence(state.name, BEGAN)
        presence.facts, presence.inventory_known = state.facts, True
    return core


def ask(core: Core, number: int, chance: random.Random) -> None:
    """A user asks for something of the mix, and attends it."""
    user = USERS[number % len(USERS)]
    chosen = chance.choices(CLASSES, WEIGHTS)[0]
    record = asking.ask(
        core,
        Ask(
            key=ServerKey(user_id=user.user_id, server_id=number),
            attempt="first",
            principal=user,
            server_name=f"s{number}",
            choice=Choice.model_validate({"profile": "lab", "class": chosen.name}),
            environment={"JUPYTERHUB_API_TOKEN": "x" * 32},
        ),
    )
    core.attended[record.id] = 1


def settle(core: Core, *, tell: bool = True) -> list[str]:
    """Decide everything, and perhaps tell everybody; return what was placed."""
    placed: list[str] = []
    unfinished = True
    while unfinished:
        plan = run_cycle(core)
        placed += [item.workload for item in plan.placements]
        unfinished = plan.is_unfinished
    while tell and retell(core, AT_A_TIME * 10):
        pass
    return placed


class FilledStore(MemoryStore):
    """A store in memory that checks and copies nothing: it is only filled once."""

    @override
    def commit(self, change: Change) -> None:
        self._workloads |= change.workloads
        self._machines |= change.machines
        self._secrets |= {
            name: secrets for name, secrets in change.secrets.items() if secrets
        }
        self._issued |= {
            name: issued for name, issued in change.issued.items() if issued
        }
        for workload, event in change.events:
            self._events.setdefault(workload, []).append(event)


def filled(machines: int, waiting: int, chance: random.Random) -> MemoryStore:
    """Return a store of a full fleet with a line."""
    store = FilledStore()
    core = a_core(store, machines, chance)
    number = 0
    while len(core.model.waiting()) < waiting:
        for _ in range(max(50, machines // 4)):
            number += 1
            ask(core, number, chance)
        settle(core, tell=False)
    settle(core)
    return store


def copied(store: MemoryStore, path: Path) -> SqliteStore:
    """Return a durable store with the same contents."""
    contents = store.load()
    durable = SqliteStore.open(path)
    durable.commit(
        Change(
            workloads={record.id: record for record in contents.workloads},
            issued={record.allocation: record for record in contents.issued},
            machines={record.name: record for record in contents.machines},
            secrets={
                record.id: store.secrets(record.id) for record in contents.workloads
            },
            events=[
                (record.id, event)
                for record in contents.workloads
                for event in store.events(record.id)
            ],
        )
    )
    durable.close()
    return SqliteStore.open(path)


def end_one(core: Core, running: list[str], chance: random.Random) -> None:
    """An agent confirms the end of one of the *running* workloads."""
    position = chance.randrange(len(running))
    running[position], name = running[-1], running[position]
    running.pop()
    assignment = core.model.workloads[name].assignment
    assert assignment is not None
    reconciling.take_report(
        core,
        assignment.machine,
        Report(
            allocation=assignment.allocation,
            epoch=assignment.epoch,
            seq=assignment.report_seq + 1,
            at=core.clock.now(),
            event=AgentEvent.ENDED,
        ),
    )


def decide(core: Core, seconds: list[float]) -> list[str]:
    """Let the controller decide; note the seconds of each placement."""
    placed: list[str] = []
    unfinished = True
    while unfinished:
        start = time.perf_counter()
        plan = run_cycle(core)
        took = time.perf_counter() - start
        unfinished = plan.is_unfinished
        placed += [item.workload for item in plan.placements]
        if plan.placements:
            seconds.append(took / len(plan.placements))
    return placed


def measure(
    core: Core, events: int, chance: random.Random, first: int, bare: BareCommits
) -> dict[str, list[float]]:
    """Return the seconds that each cycle with a placement took, and each other step.

    A bare commit follows each event, so that both meet the same disk and the same load.
    """
    running = [record.id for record in core.model.workloads.values() if record.holds]
    figures: dict[str, list[float]] = {"decision": [], "report": [], "told": []}
    figures["written_back"] = []
    for number in range(first, first + events):
        core.clock.moment += timedelta(seconds=chance.expovariate(2.0))
        ask(core, number, chance)
        running += decide(core, figures["decision"])
        start = time.perf_counter()
        end_one(core, running, chance)
        figures["report"].append(time.perf_counter() - start)
        running += decide(core, figures["decision"])
        start = time.perf_counter()
        retell(core, AT_A_TIME)
        figures["told"].append(time.perf_counter() - start)
        # As the service does twice a second.
        core.engine.tidy(core.clock.now())
        start = time.perf_counter()
        core.store.write_back()
        figures["written_back"].append(time.perf_counter() - start)
        bare.one()
    return figures


class BareCommits:
    """Commits of two rows to a database of its own, with the settings of the store."""

    def __init__(self, path: Path) -> None:
        """Make the database."""
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        for table in ("one", "two"):
            self._connection.execute(
                f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, text TEXT) STRICT"
            )
        self.seconds: list[float] = []

    def one(self) -> None:
        """Commit once, and note the seconds that it took."""
        number, text = len(self.seconds), "x" * 1000
        start = time.perf_counter()
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("INSERT INTO one VALUES (?, ?)", (number, text))
        self._connection.execute("INSERT INTO two VALUES (?, ?)", (number, text))
        self._connection.execute("COMMIT")
        self.seconds.append(time.perf_counter() - start)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def main() -> None:
    """Measure each size and keep the figures; exits with 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, nargs="*", default=[10, 1000, 10_000])
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--events", type=int, default=1000)
    arguments = parser.parse_args()
    samples: dict[str, list[float]] = {}
    figures: dict[str, float] = {}
    targets: dict[str, float] = {}
    facts: dict[str, Any] = {}
    for size in arguments.machines:
        chance = random.Random(7)
        store = filled(size, arguments.waiting, chance)
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            durable = copied(store, Path(folder) / "store.sqlite")
            core = a_core(durable, size, chance)
            settle(core)
            # As the service does when it starts and while it is idle.
            Memory().put_aside()
            bare = BareCommits(Path(folder) / "bare.sqlite")
            # What a class is first asked for is looked up once on every machine.
            measure(core, WARMING_EVENTS, chance, 10_000_000, bare)
            found = measure(core, arguments.events, chance, 20_000_000, bare)
            bare.close()
            durable.close()
        gc.unfreeze()
        samples[f"bare_commit_{size}"] = bare.seconds
        samples |= {f"{name}_{size}": values for name, values in found.items()}
        decision = found["decision"]
        figures[f"ratio_{size}"] = quantile(decision, 0.5) / quantile(bare.seconds, 0.5)
        figures[f"p99_ms_{size}"] = quantile(decision, 0.99) * 1000
        targets |= {f"ratio_{size}": 5.0, f"p99_ms_{size}": 5.0}
        facts[f"waiting_{size}"] = len(core.model.waiting())
    met = keep(
        "durable_decisions",
        samples=samples,
        ratios=figures,
        targets=targets,
        facts=facts,
    )
    sys.exit(not met)


if __name__ == "__main__":
    main()
