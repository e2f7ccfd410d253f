"""Files that go to where a new choice can run: whole, or not at all.

A real Hub with its proxy and controller, two real agents and real notebook servers.
Each machine can run one class that the other cannot, so the files go to and fro.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import gated_agent
import pytest
from bs4 import BeautifulSoup
from copied_files import content, fill, generation, ways
from fleet import Fleet, Machine, wait_until
from native_fleet import (
    NATIVE_PATIENCE,
    NEEDS_NATIVE,
    add_native_machine,
    keep_environments,
)
from shared_fleet import as_found


pytestmark = [
    *NEEDS_NATIVE,
    pytest.mark.timeout(900),
]

CATALOG = """
classes:
  - {name: roomy, title: Roomy, description: "Much memory.", cpu: 0.1, memory: 600M}
  - {name: quick, title: Quick, description: "Many cores.", cpu: 2, memory: 256M}
runtimes:
  - {name: jupyter, title: JupyterLab, accelerators: [cpu], driver_refs: {native: jupyter}}
profiles:
  - {name: lab, title: Lab, description: "CPU.", classes: [roomy, quick], runtimes: [jupyter]}
"""
MORE = """
c.FleetSpawner.args = ["--allow-root"]
"""
CLASSES = {"near": "roomy", "far": "quick"}
"""What each machine can run, and no other."""


@dataclass
class Two:
    """A fleet with two machines, and a gate in the middle of everything sent."""

    fleet: Fleet
    gate: Path
    machines: dict[str, Machine] = field(default_factory=dict)
    home: str = "near"
    """Where ada's files are."""

    @property
    def other(self) -> str:
        """Where they are not."""
        return next(name for name in CLASSES if name != self.home)

    @property
    def files(self) -> Path:
        """The folder of ada's server."""
        return self.folders(self.home)[-1]

    def copied(self) -> Path:
        """Note that it runs elsewhere now, and return its folder there."""
        self.ready()
        self.home = self.other
        return self.files

    def stop(self) -> None:
        """Stop the server, and see that it holds nothing and left nothing half made."""
        self.fleet.stop_server("ada")
        assert not self.fleet.status("ada")["holds"]
        assert self.leftovers() == []

    def settled(self) -> None:
        """Return once the Hub knows that a start is over."""
        wait_until(lambda: self.fleet.server("ada") is None, "the Hub knows it")

    def start(self, machine: str, files: str | None = None) -> None:
        """Ask for ada's server by REST, with what *machine* can run."""
        options = {"profile": "lab", "class": CLASSES[machine], "files": files}
        options = {name: value for name, value in options.items() if value}
        answer = self.fleet.ask("ada", options)
        assert answer.status_code in {201, 202}, answer.text

    def ready(self) -> None:
        """Return once the Hub has it."""
        self.fleet.wait_ready("ada", patience=NATIVE_PATIENCE)

    def notebooks(self, machine: str) -> Path:
        """Return where *machine* keeps files."""
        return self.machines[machine].folder / "native" / "notebooks"

    def folders(self, machine: str) -> list[Path]:
        """Return the notebook folders of *machine*, the newest last."""
        found = [p for p in self.notebooks(machine).glob("[!.]*") if p.is_dir()]
        return sorted(found, key=generation)

    def leftovers(self) -> list[Path]:
        """Return everything of a copy that is not a whole folder in use."""
        return [
            path
            for machine in self.machines
            for kind in (".arriving", ".arrived")
            for path in (self.notebooks(machine) / kind).glob("*")
        ]

    def reasons(self) -> list[str]:
        """Return the reasons that this start's timeline gives."""
        document = self.fleet.timeline("ada")
        return [
            event["explanation"]["reason"]
            for event in document["events"]
            if event["generation"] == document["generation"] and event["explanation"]
        ]

    def steps(self) -> dict[str, Any]:
        """Return how far each thing that was done in this start has got."""
        document = self.fleet.timeline("ada")
        return {
            event["progress"]["step"]: event["progress"]
            for event in document["events"]
            if event["generation"] == document["generation"] and event["progress"]
        }

    def shut(self) -> None:
        """Let whoever sends wait in the middle."""
        for name in ("open", "waiting"):
            (self.gate / name).unlink(missing_ok=True)

    def open(self) -> None:
        """Let them go on."""
        (self.gate / "open").touch()

    def half_way(self) -> None:
        """Return once half of the files are at the other machine."""
        wait_until((self.gate / "waiting").exists, "the sender waits in the middle")
        arriving = self.notebooks(self.other) / ".arriving"
        wait_until(
            lambda: any(path.is_file() for path in arriving.rglob("*")),
            "some files have arrived",
        )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    """Return the fleet, with ada's files on the machine that has memory."""
    folder = tmp_path_factory.mktemp("fleet")
    gate = folder / "gate"
    gate.mkdir()
    program = (gated_agent.__file__, str(gate))
    with Fleet(folder=folder, catalog=CATALOG, more_config=MORE) as fleet:
        both = Two(fleet, gate)
        both.open()
        fleet.token_of("ada")
        for name, terms in (
            ("near", {"max_cpu": "1", "max_memory": "1G"}),
            ("far", {"max_cpu": "2", "max_memory": "512M"}),
        ):
            both.machines[name] = add_native_machine(
                fleet, name, program=program, standby=False, **terms
            )
            if name == "near":
                fleet.wait_for_agent("near")
                both.start("near")
                both.ready()
                keep_environments(both.machines[name])
                fleet.stop_server("ada")
                fill(*both.folders("near"))
        wait_until(lambda: "copy_files" in ways(fleet, "quick"), "copying is offered")
        yield both


@pytest.fixture
def two(shared: Two) -> Iterator[Two]:
    """Return that fleet, as each test finds it; ada's files may be on either machine."""
    with as_found(shared.fleet):
        yield shared
        shared.open()


def test_files_are_copied_by_rest_and_then_back_by_the_form(two: Two) -> None:
    """Whole, the owner's there too, told in the timeline; the first ones stay."""
    here, target = two.files, two.other
    before = content(here)
    two.start(target, "copy")
    there = two.copied()
    assert content(there) == before
    assert content(here) == before
    assert there.stat().st_uid == here.stat().st_uid
    assert not (there / "outside").is_symlink()
    assert (there / "work" / "holes").stat().st_blocks * 512 < 1 << 20
    told = two.reasons()
    assert told.index("files_to_copy") < told.index("files_copied")
    steps = two.steps()
    assert steps["copy_bytes"]["done"] == steps["copy_bytes"]["total"] > 3 << 20
    assert steps["copy_files"]["done"] == steps["copy_files"]["total"] > 5
    two.stop()

    later = there / "work" / "later"
    later.write_text("made where it was copied to")
    os.chown(later, there.stat().st_uid, there.stat().st_gid)
    two.start(target, "copy")
    two.ready()
    assert two.files == there, "the wish leads away no second time"
    assert "files_copied" not in two.reasons()
    two.stop()

    browser = two.fleet.log_in("ada")
    url = f"{two.fleet.url}/hub/spawn/ada"
    page = BeautifulSoup(browser.get(url, timeout=60).text, "html.parser")
    form = page.select_one("#spawn_form")
    assert form is not None
    assert form.select_one("input[name=files][value=copy]") is not None, form
    fields = {
        "profile": "lab",
        "class-lab": CLASSES[two.other],
        "files": "copy",
    }
    answer = browser.post(urljoin(url, str(form["action"])), data=fields, timeout=60)
    assert answer.status_code == 200, answer.text
    back = two.copied()
    assert back != here
    assert content(back) == content(there)
    assert content(here) == before
    two.stop()


def test_whoever_is_killed_in_the_middle_the_copy_is_whole_or_is_not(two: Two) -> None:
    """Either agent, the controller, the Hub: it begins anew, and nothing half is left."""
    fleet = two.fleet

    def a_new_hub() -> None:
        fleet.kill_hub()
        fleet.start_hub()

    for kill in (
        lambda: again(fleet, two.home),
        lambda: again(fleet, two.other),
        fleet.kill_controller,
        a_new_hub,
    ):
        here, before = two.files, content(two.files)
        known = two.folders(two.other)
        two.shut()
        two.start(two.other, "copy")
        two.half_way()
        assert two.folders(two.other) == known, "a half is never shown"
        kill()
        two.open()
        there = two.copied()
        assert two.folders(two.home) == [*known, there]
        assert content(there) == content(here) == before
        two.stop()


def again(fleet: Fleet, machine: str) -> None:
    """Kill an agent as hard as can be, and start another one."""
    fleet.kill_agent(machine)
    fleet.start_agent(machine)


def test_what_fails_or_is_left_in_the_middle_leaves_nothing(two: Two) -> None:
    """Its reason is told, nothing is held, and the files are where they were."""
    here, known = two.files, two.folders(two.other)
    aside = two.fleet.folder / "aside"
    here.rename(aside)
    options = {"profile": "lab", "class": CLASSES[two.other], "files": "copy"}
    two.fleet.ask("ada", options)
    failed = two.fleet.wait_state("ada", "failed")
    assert failed["explanation"]["reason"] == "copy_failed"
    assert failed["explanation"]["detail"] == "the folder with the files is not there"
    aside.rename(here)
    two.settled()

    two.shut()
    two.start(two.other, "copy")
    two.half_way()
    two.fleet.controller("POST", f"servers/{two.fleet.key('ada')}/leave")
    ended = two.fleet.wait_state("ada", "stopped")
    assert not ended["holds"]
    assert two.leftovers() == []
    assert two.folders(two.other) == known
    two.open()
    two.settled()
    two.start(two.home)
    two.ready()
    assert two.files == here
    two.stop()
