"""``jupyter-fleet demo`` on real processes: what an admin sees within a minute."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fleet
import pytest
from fleet_parts import NEEDS_HUB
from patience import free_port
from whole_run import Run


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.timeout(300),
]

BAD_FLEET = """
machines:
  - {name: box, owner: ada, computer: {cores: many, memory: 1G}}
"""


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Run]:
    """A demo that is not started yet."""
    prepared = Run(tmp_path, free_port(), "demo")
    yield prepared
    prepared.close()


def told(demo: Run, *words: str) -> dict[str, Any]:
    """Return what a command says about the demo, as JSON."""
    where = ("--data-dir", str(demo.folder / "data"), "--json")
    command = [sys.executable, "-m", "fleet_hub.cli", *words, *where]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def test_a_demo_shows_who_holds_what_and_why_somebody_waits(demo: Run) -> None:
    """Every kind of machine is there, a line has formed, and Ctrl-C ends it all."""
    demo.start_and_wait()

    machines = {each["name"]: each for each in told(demo, "machines")["machines"]}
    assert all(machine["online"] for machine in machines.values())
    assert {machine["provider"] for machine in machines.values()} == {"demo"}
    devices = {
        name: len(machine["capabilities"]["accelerators"])
        for name, machine in machines.items()
    }
    assert devices == {
        "mac-studio": 1,
        "gpu-box": 8,
        "workstation": 1,
        "node-1": 0,
        "broken-box": 0,
    }
    # Until when, is known once bo's server is ready.
    fleet.wait_until(
        lambda: "held by bo (Training) until" in str(told(demo, "queue")["waiting"]),
        "the line says whom it waits for",
    )
    [waiting] = told(demo, "queue")["waiting"]
    assert waiting["user"] == "cy"

    assert demo.end(signal.SIGINT) == 0
    assert demo.still_alive() == []


def test_a_shape_that_no_computer_has_is_said_with_the_word_that_is_wrong(
    demo: Run, tmp_path: Path
) -> None:
    """The agent's own words are shown, and nothing is left running."""
    (tmp_path / "fleet.yaml").write_text(BAD_FLEET)
    demo.words += ("--fleet", str(tmp_path / "fleet.yaml"))
    demo.start()
    assert demo.process is not None

    assert demo.process.wait(120) == 1
    assert "cores" in demo.told()
    assert demo.still_alive() == []
