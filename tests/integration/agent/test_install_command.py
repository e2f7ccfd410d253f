"""``fleet-agent install``, with a service manager that writes down what it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass
class Computer:
    """A user's home, and a pretended systemctl on its PATH."""

    home: Path
    calls: Path
    environment: dict[str, str]
    state: Path

    def install(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command as a user who is not root would."""
        # The command decides by the user: where the tests are root it is told another.
        code = (
            "import os, sys; os.geteuid = lambda: 1000; "
            "from fleet_agent.state_folder import StateFolder; "
            "StateFolder.make = lambda self: None; "
            "from fleet_agent.cli import main; sys.exit(main(sys.argv[1:]))"
        )
        return subprocess.run(
            [
                sys.executable,
                "-c",
                code,
                "install",
                f"--state-dir={self.state}",
                *words,
            ],
            capture_output=True,
            text=True,
            check=False,
            env=self.environment,
        )

    def told(self) -> list[str]:
        """Return what systemctl was told."""
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    @property
    def unit(self) -> Path:
        """Where the unit belongs."""
        return self.home / ".config/systemd/user/jupyterhub-fleet-agent.service"


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    """Return an enrolled computer whose service manager works."""
    home, tools, calls = tmp_path / "home", tmp_path / "tools", tmp_path / "calls"
    state = home / "state folder"
    for folder in (home, tools, state):
        folder.mkdir()
    (state / "token").write_text("t0k3n")
    systemctl = tools / "systemctl"
    systemctl.write_text(
        f'#!/bin/sh\necho "$@" >> {calls}\n'
        '[ -z "$FAILS" ] || '
        '{ echo "Failed to connect to bus" >&2; exit 1; }\n'
    )
    systemctl.chmod(0o755)
    environment = {
        "HOME": str(home),
        "PATH": os.pathsep.join([str(tools), os.environ.get("PATH", os.defpath)]),
    }
    return Computer(home, calls, environment, state)


def test_the_service_is_written_and_started(computer: Computer) -> None:
    """The unit names this very Python and the folder, whatever its name is."""
    done = computer.install()

    assert done.returncode == 0, done.stderr
    text = computer.unit.read_text()
    assert f'"--state-dir={computer.state}"' in text
    assert f"ExecStart={sys.executable} -m fleet_agent.cli run " in text
    assert computer.told() == [
        "--user daemon-reload",
        "--user enable --now jupyterhub-fleet-agent.service",
    ]
    assert "enable-linger" in done.stdout


def test_the_unit_can_be_read_before_anything_is_done(computer: Computer) -> None:
    """``--print`` writes nothing and starts nothing."""
    done = computer.install("--print")

    assert "KillMode=process" in done.stdout
    assert not computer.unit.exists()
    assert computer.told() == []


def test_a_configuration_that_is_not_there_is_no_service(computer: Computer) -> None:
    """Its agent would end at each start; a mistyped name is found before."""
    done = computer.install("--config", str(computer.home / "agnet.json"))

    assert done.returncode == os.EX_CONFIG
    assert "there is no configuration file" in done.stderr
    assert not computer.unit.exists()


def test_a_computer_that_is_not_enrolled_gets_no_service(computer: Computer) -> None:
    """Its agent would end at once, again and again; the remedy is said."""
    (computer.state / "token").unlink()
    done = computer.install()

    assert done.returncode == os.EX_CONFIG
    assert "fleet-agent enrol" in done.stderr
    assert not computer.unit.exists()


def test_a_manager_that_does_not_work_is_quoted(computer: Computer) -> None:
    """Its own words reach whoever runs the command."""
    computer.environment["FAILS"] = "yes"
    done = computer.install()

    assert done.returncode == os.EX_CONFIG
    assert "Failed to connect to bus" in done.stderr


def test_a_removed_service_is_stopped_first(computer: Computer) -> None:
    """And removing it twice is no fault."""
    computer.install()
    first, second = computer.install("--remove"), computer.install("--remove")

    assert first.returncode == second.returncode == 0
    assert "run on" in first.stdout
    assert "no service" in second.stdout
    assert computer.told()[-1] == (
        "--user disable --now jupyterhub-fleet-agent.service"
    )
    assert not computer.unit.exists()
