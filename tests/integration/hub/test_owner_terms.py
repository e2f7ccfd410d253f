"""What a machine's owner allows is kept by a whole fleet, and told to whoever waits.

Real Hub, proxy, controller and agent; only the day of the machine is the test's.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lent_machine
import pytest
import requests
from fleet import Fleet, wait_until
from fleet_parts import NEEDS_HUB
from shared_fleet import as_found


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

TERMS = {
    "drivers": ["simulation"],
    "hours": "mon-fri 18:00-08:00",
    "not_while_used": True,
    "idle_minutes": 15,
    "not_on_battery": True,
    "max_cpu": "0.3",
    "max_memory": "150M",
}
MORE = "c.JupyterHub.allow_named_servers = True"


@dataclass
class Lent:
    """A fleet whose one machine is lent on terms."""

    fleet: Fleet
    day: Path
    state: Path

    def tell(self, word: str) -> None:
        """Run ``fleet-agent`` *word* as the owner does in a terminal."""
        command = [sys.executable, "-m", "fleet_agent.cli", word]
        subprocess.run([*command, f"--state-dir={self.state}"], check=True)

    def unmet(self) -> list[str]:
        """Return the reasons that the controller has for the machine's rest."""
        [machine] = self.fleet.controller("GET", "machines")["machines"]
        terms = machine["capabilities"]["terms"]
        return [term["reason"] for term in terms if term["met"] is not True]

    @contextmanager
    def asked(self, server: str, profile: str = "one") -> Iterator[None]:
        """Let ada ask for a server meanwhile; she gets it in the end."""
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(self.fleet.ask, "ada", {"profile": profile}, server)
            yield
            assert asked.result().status_code in {201, 202}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lent]:
    """Return the fleet, in the evening, when nothing keeps the machine from work."""
    folder = tmp_path_factory.mktemp("fleet")
    day = folder / "day.json"
    lent_machine.write_day(day)
    with Fleet(folder=folder, more_config=MORE) as fleet:
        fleet.token_of("ada")
        machine = fleet.add_agent("box", owner="ada", settings=dict(TERMS), start=False)
        machine.program = (str(Path(lent_machine.__file__)), str(day))
        fleet.start_agent("box")
        fleet.wait_for_agent("box")
        yield Lent(fleet, day, machine.folder)


@pytest.fixture
def lent(shared: Lent) -> Iterator[Lent]:
    """Return that fleet, as each test finds it: in the evening, and open."""
    with as_found(shared.fleet):
        yield shared
        lent_machine.write_day(shared.day)
        shared.tell("resume")
        wait_until(lambda: shared.unmet() == [], "nothing keeps the machine from work")


CLOSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "outside_hours",
        {"now": "2026-11-25T12:00:00"},
        "its owner lends it at other hours",
    ),
    ("owner_at_work", {"idle_minutes": 1}, "its owner is using it"),
    (
        "presence_unknown",
        {"idle_minutes": None},
        "its owner lends it only while they do not use it, and nobody can tell",
    ),
    ("on_battery", {"plugged_in": False}, "it runs on its battery"),
]


@pytest.mark.parametrize(
    ("reason", "day", "sentence"), CLOSED, ids=[item[0] for item in CLOSED]
)
def test_a_start_waits_for_its_owners_terms_says_why_and_starts_by_itself(
    lent: Lent, reason: str, day: dict[str, Any], sentence: str
) -> None:
    """On the spawn page, in the line and in the timeline; what runs runs on."""
    fleet = lent.fleet
    fleet.start_server("ada", {"profile": "one"}, "before")
    lent_machine.write_day(lent.day, **day)
    wait_until(lambda: lent.unmet() == [reason], f"the controller knows of {reason}")

    page = fleet.log_in("ada").get(f"{fleet.url}/hub/spawn/ada/new")
    assert sentence in page.text.replace("&#39;", "'")
    with lent.asked("new"):
        wait_until(lambda: _told(fleet, "new", reason), "the timeline says why")
        status = fleet.status("ada", "new")
        assert status["state"] == "queued"
        assert sentence in status["headline"]
        assert fleet.status("ada", "before")["state"] == "ready"
        lent_machine.write_day(lent.day)
        fleet.wait_ready("ada", "new")

    assert lent.unmet() == []
    for server in ("before", "new"):
        fleet.stop_server("ada", server)


def test_the_time_at_which_the_hours_begin_is_told(lent: Lent) -> None:
    """By the machine's own clock, to whoever waits."""
    lent_machine.write_day(lent.day, now="2026-11-25T12:00:00")
    wait_until(lambda: lent.unmet() == ["outside_hours"], "it is closed")
    [machine] = lent.fleet.controller("GET", "machines")["machines"]
    [hours] = [t for t in machine["capabilities"]["terms"] if t["name"] == "hours"]
    assert hours["until"].startswith("2026-11-25T18:00:00")
    lent_machine.write_day(lent.day)
    wait_until(lambda: lent.unmet() == [], "it is open again")


def test_an_owner_drains_and_resumes_under_somebody_who_waits(lent: Lent) -> None:
    """One word in the machine's own terminal, and one more."""
    fleet = lent.fleet
    lent.tell("drain")
    wait_until(lambda: lent.unmet() == ["draining"], "the controller knows of it")
    with lent.asked("new"):
        wait_until(lambda: _told(fleet, "new", "draining"), "the timeline says why")
        assert fleet.status("ada", "new")["state"] == "queued"
        lent.tell("resume")
        fleet.wait_ready("ada", "new")
    fleet.stop_server("ada", "new")


def test_all_notebooks_together_hold_no_more_than_is_lent(lent: Lent) -> None:
    """150 M are two of 64 M: the third waits for one of them to end."""
    fleet = lent.fleet
    for server in ("first", "second"):
        fleet.start_server("ada", {"profile": "one"}, server)
    with lent.asked("third"):
        wait_until(lambda: _told(fleet, "third", "memory_busy"), "it waits for memory")
        fleet.stop_server("ada", "first")
        fleet.wait_ready("ada", "third")
    for server in ("second", "third"):
        fleet.stop_server("ada", server)


def test_what_its_owner_never_lends_is_refused_with_what_is_lent(lent: Lent) -> None:
    """All cores of a machine that lends a third of one: no waiting would help."""
    answer = lent.fleet.ask("ada", {"profile": "all"}, "huge")

    assert answer.status_code >= 400
    assert "0.3" in answer.text, answer.text


def _told(fleet: Fleet, server: str, reason: str) -> bool:
    """Whether the timeline of *server* gives *reason*."""
    try:
        events: list[dict[str, Any]] = fleet.timeline("ada", server)["events"]
    except (LookupError, requests.RequestException):
        return False
    return any(
        (event.get("explanation") or {}).get("reason") == reason for event in events
    )
