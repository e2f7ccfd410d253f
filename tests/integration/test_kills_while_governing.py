"""kill -9 of the controller at each commit while its machines are governed.

What an admin, an owner or one who waits has said is either done, logged and told, or
none of that; said again it is done once.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import governing_crashes
import pytest
from controller_aftermath import Aftermath
from governing_crashes import ADMIN, BOB, CATALOG, DEEDS, DRIVER, LABELS, MEMBERS, told

from fleet_contracts.allocations import State
from fleet_contracts.catalog import Relation
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Reason
from fleet_contracts.workloads import ServerKey
from fleet_hub.controller import enrolling, governing, releasing
from fleet_hub.controller.core import Core
from fleet_hub.controller.errors import CodeRefusedError
from fleet_hub.controller.records import Workload
from fleet_hub.controller.states import handle_of


pytestmark = [pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A folder for each moment at which the controller was killed."""
    root = tmp_path_factory.mktemp("crashes")
    subprocess.run(
        [sys.executable, governing_crashes.__file__, str(root)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return sorted(root.iterdir(), key=lambda folder: int(folder.name))


def shown(core: Core) -> set[str]:
    """Return which deeds the records show."""
    machines = core.model.machines
    large, small, far = (machines.get(name) for name in ("large", "small", "far"))
    found = {
        "code_made": far is not None or bool(core.model.codes),
        "joined": far is not None,
        "rotated": far is not None and not far.token_hash,
    }
    if large is not None and small is not None:
        found |= {
            "audience_set": large.admin_allows is Relation.MEMBER,
            "lending_set": large.owner_allows is Relation.MEMBER,
            "members_set": large.members == MEMBERS,
            "labels_set": large.labels == LABELS,
            "drained": small.draining_by is not None,
        }
    found["declared_lost"] = reasons(core, 1)[Reason.MACHINE_LOST] > 0
    found["release_asked"] = reasons(core, 2)[Reason.RELEASE_ASKED] > 0
    return {name for name, is_shown in found.items() if is_shown}


def logged(core: Core) -> Counter[str]:
    """Return which deeds the audit log names, and how often."""
    names = []
    for numbered in core.store.audit(limit=1000):
        action = numbered.entry.action.value
        if action != "enrolled":
            names.append(action)
        elif numbered.entry.target == "far":
            names.append("joined")
    # Whoever voids a token gets a code with it.
    return Counter(names) - Counter(["code_made"] * names.count("rotated"))


def server(core: Core, number: int) -> Workload | None:
    """Return alice's server (1) or bob's (2), if it was asked for."""
    return core.model.by_key(ServerKey(user_id=number, server_id=number))


def reasons(core: Core, number: int) -> Counter[Reason]:
    """Return what the timeline of one of the servers tells, and how often."""
    record = server(core, number)
    events = () if record is None else core.store.events(record.id)
    return Counter(
        event.explanation.reason for event in events if event.explanation is not None
    )


def test_what_was_said_of_machines_is_done_and_logged_or_neither(
    crashes: list[Path], tmp_path: Path
) -> None:
    """Whatever was answered is so; then all of it is said again, and everybody ends."""
    assert len(crashes) > 40
    seen: set[str] = set()
    for folder in crashes:
        after = Aftermath(
            shutil.copytree(folder, tmp_path / folder.name),
            catalog=CATALOG,
            driver=DRIVER,
        )
        core, done = after.fleet.core, told(folder)
        assert shown(core) == set(logged(core)), folder
        assert done.keys() <= shown(core), folder
        assert set(logged(core).values()) <= {1}, folder
        seen |= shown(core)
        asked = reasons(core, 2)[Reason.RELEASE_ASKED]
        assert asked == reasons(core, 1)[Reason.RELEASE_WISHED], folder
        _join(core, done, folder)
        after.check()
        after.connect()
        _govern(after)
        _end(after)
        left = {
            record.state
            for record in core.model.workloads.values()
            if record.assignment is not None
        }
        assert (left, core.model.issued) == (set(), {}), folder
        after.fleet.store.close()
    assert seen == {*DEEDS, "code_made", "joined", "rotated"} | {
        "release_asked",
        "declared_lost",
    }


def _join(core: Core, done: dict[str, dict[str, str]], folder: Path) -> None:
    """The code is used up with the machine that it made, or is good for it still."""
    if "code_made" not in done:
        return
    code = done["code_made"]["code"]
    joined = core.model.machines.get("far")
    if joined is None:
        machine, token = enrolling.exchange(core, code)
        assert enrolling.machine_of(core, token) == machine.name == "far", folder
        return
    with pytest.raises(CodeRefusedError):
        enrolling.exchange(core, code)
    if "joined" in done:
        speaks = enrolling.machine_of(core, done["joined"]["token"])
        assert speaks == ("far" if joined.token_hash else None), folder
    # Whoever never got the token makes another code; it is the same machine.
    again = enrolling.make_code(core, ADMIN, name="far", owner="bob", local=True)
    machine, token = enrolling.exchange(core, again)
    assert enrolling.machine_of(core, token) == machine.name == "far", folder


def _govern(after: Aftermath) -> None:
    """Say everything again."""
    core = after.fleet.core
    for deed in DEEDS.values():
        deed(core)
    holder, waiter = server(core, 1), server(core, 2)
    if holder is not None and holder.assignment is not None and waiter is not None:
        handle = handle_of(holder.assignment.allocation)
        for _ in range(2):
            releasing.ask(core, waiter, handle, by=BOB)
        assert reasons(core, 1)[Reason.RELEASE_WISHED] == 1
    governing.resume(core, ADMIN, "small")
    assert shown(core) >= DEEDS.keys() - {"drained"}


def _end(after: Aftermath) -> None:
    """What was declared lost and still ran is ended; then everybody has their turn."""
    for agent in after.fleet.agents.values():
        for stop in agent.stops():
            if stop.allocation in after.running(agent.machine):
                agent.report(stop.allocation, AgentEvent.ENDED)
    after.fleet.cycle()
    after.finish()
    assert {record.state for record in after.fleet.core.model.workloads.values()} <= {
        State.STOPPED,
        State.FAILED,
    }
