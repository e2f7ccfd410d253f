"""Kill a controller while its fleet is governed, before and after each of its commits.

Run as a script with an empty folder, as ``controller_crashes``, with other work.  What
was done by then stands in ``told``, by the name of the deed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from controller_catalogs import a_catalog
from controller_crashes import CORES, Journal, JournaledAgent, kill_each
from fake_agent import some_capabilities
from fleet_builders import a_principal
from fleet_controller import Fleet, allocation_of

from fleet_contracts.catalog import Relation, Runtime
from fleet_contracts.workloads import Accelerator, DriverName
from fleet_hub.adapters.sqlite_store import SqliteStore
from fleet_hub.controller import enrolling, governing, releasing
from fleet_hub.controller.audit_entry import Actor, ActorRole
from fleet_hub.controller.core import Core
from fleet_hub.controller.states import handle_of


ADMIN = Actor(name="root", role=ActorRole.ADMIN)
ALICE = Actor(name="alice", role=ActorRole.OWNER)
BOB = Actor(name="bob", role=ActorRole.USER)
DRIVER = DriverName.SIMULATION
CATALOG = a_catalog(
    runtimes=(
        Runtime(name="python", accelerators=(Accelerator.CPU,), ref="secret-ref"),
    )
)
LABELS = {"room": "b"}
MEMBERS = ("bob",)

DEEDS: dict[str, Callable[[Core], object]] = {
    "audience_set": lambda core: governing.set_audience(
        core, ADMIN, "large", Relation.MEMBER
    ),
    "lending_set": lambda core: governing.set_lending(
        core, ALICE, "large", Relation.MEMBER
    ),
    "members_set": lambda core: governing.set_members(
        core, ALICE, "large", users=MEMBERS, groups=()
    ),
    "labels_set": lambda core: governing.set_labels(core, ADMIN, "large", LABELS),
    "drained": lambda core: governing.drain(core, ADMIN, "small"),
}
"""What is said of machines, by what the audit log calls it."""


def govern(folder: Path) -> None:
    """One machine joins, others are governed and lost, and who waits asks for release."""
    journal = Journal(folder / "told")
    fleet = Fleet(SqliteStore.open(folder / "controller.sqlite"), catalog=CATALOG)
    core = fleet.core
    for name, cores in CORES.items():
        enrolling.enrol(core, name=name, owner="alice", local=True)
        agent = JournaledAgent(core, fleet.registry, name)
        agent.journal = journal
        agent.capabilities = some_capabilities(cores, DRIVER)
        fleet.agents[name] = agent
        agent.connect(cores=cores)
        journal.tell(enrolled=name)
    fleet.cycle()
    code = enrolling.make_code(core, ADMIN, name="far", owner="bob", local=True)
    journal.tell(done="code_made", code=code)
    _, token = enrolling.exchange(core, code)
    journal.tell(done="joined", token=token)
    for name, deed in DEEDS.items():
        deed(core)
        journal.tell(done=name)
    holder = fleet.ask(1, class_name="whole")
    journal.tell(asked=1)
    allocation = allocation_of(holder)
    fleet.agents["large"].serve(allocation)
    waiter = fleet.ask(2, class_name="whole", principal=a_principal("bob", 2))
    journal.tell(asked=2)
    releasing.ask(core, waiter, handle_of(allocation), by=BOB)
    journal.tell(done="release_asked")
    fleet.agents["large"].disconnect()
    governing.declare_lost(core, ADMIN, "large")
    journal.tell(done="declared_lost")
    fleet.cycle()
    enrolling.rotate(core, ADMIN, "far")
    journal.tell(done="rotated")


def told(folder: Path) -> dict[str, Any]:
    """Return what was done when the controller was killed, with what came of it."""
    path = folder / "told"
    lines = path.read_text().splitlines() if path.exists() else []
    items = [json.loads(line) for line in lines]
    return {item["done"]: item for item in items if "done" in item}


if __name__ == "__main__":
    kill_each(Path(sys.argv[1]), govern)
