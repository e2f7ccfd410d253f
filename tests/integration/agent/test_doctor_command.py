"""``fleet-agent doctor`` finds what keeps a computer from taking work."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from patience import until_so
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from fleet_agent import settings, state_folder
from fleet_agent.commands import doctor, drain
from fleet_agent.examination import running
from fleet_agent.examination.running import (
    is_agent,
    running_folders,
    state_folder_of,
)
from fleet_agent.state_folder import StateFolder, default_state_folder


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


class Health(RequestHandler):
    """A controller that answers, and whose clock is its own."""

    async def get(self) -> None:
        """Say the time there."""
        self.set_header("Date", format_datetime(self.settings["clock"](), usegmt=True))
        self.finish("{}")


@dataclass
class Patient:
    """A computer that is looked at."""

    folder: Path
    port: int = 0
    ahead: timedelta = timedelta()
    lock: ExitStack = field(default_factory=ExitStack)
    """What an agent holds while it works in the folder."""

    def clock(self) -> datetime:
        """Return the controller's time."""
        return datetime.now(UTC) - self.ahead

    async def doctor(self, *words: str) -> tuple[int, str]:
        """Return the command's exit status and what it said."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fleet_agent.cli", "doctor"),
            *(f"--state-dir={self.folder}", "--FleetAgent.drivers=simulation", *words),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )
        said, _ = await process.communicate()
        return process.returncode or 0, said.decode()

    async def findings(self, *words: str) -> dict[str, dict[str, Any]]:
        """Return the findings by their subject."""
        _, said = await self.doctor("--json", *words)
        return {it["subject"]: it for it in json.loads(said)["findings"]}


@pytest_asyncio.fixture
async def patient(tmp_path: Path) -> AsyncIterator[Patient]:
    """Return an enrolled computer whose controller answers, and whose agent runs."""
    patient = Patient(tmp_path / "agent")
    routes = [(r"/services/fleet/health", Health)]
    server = HTTPServer(Application(routes, clock=patient.clock))
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    patient.port = sockets[0].getsockname()[1]
    folder = StateFolder(patient.folder)
    folder.make()
    folder.token.write_text("t0k3n")
    folder.token.chmod(0o600)
    controller = f"http://127.0.0.1:{patient.port}/services/fleet/"
    folder.enrolment.write_text(json.dumps({"controller": controller}))
    with patient.lock:
        patient.lock.enter_context(folder.lock())
        yield patient
    server.stop()
    await server.close_all_connections()


async def test_a_computer_in_order_is_told_so(patient: Patient) -> None:
    """Everything is looked at, and the exit status says that all is well."""
    status, said = await patient.doctor()

    assert status == 0, said
    assert "Nothing stands in the way" in said
    for subject in ("state folder", "enrolment", "agent", "controller", "disk"):
        assert f"ok  {subject}: " in said


async def test_nothing_is_changed(patient: Patient) -> None:
    """Looking leaves no file behind."""
    before = sorted(path.name for path in patient.folder.iterdir())
    await patient.doctor()

    assert sorted(path.name for path in patient.folder.iterdir()) == before


async def test_a_computer_that_never_joined_is_told_how(tmp_path: Path) -> None:
    """Each finding has its remedy below it."""
    status, said = await Patient(tmp_path / "nowhere").doctor()

    assert status == 1
    assert "fleet-agent enrol" in said
    assert "2 of these keep this computer from taking work." in said
    assert not (tmp_path / "nowhere").exists()


async def test_a_token_that_others_can_read_is_found(patient: Patient) -> None:
    """As the agent itself would find it, before it starts."""
    (patient.folder / "token").chmod(0o644)
    found = await patient.findings()

    assert found["enrolment"]["ok"] is False
    assert "chmod 600" in found["enrolment"]["text"]


async def test_a_controller_that_is_away_is_found(patient: Patient) -> None:
    """The address and the network's own words are told."""
    found = await patient.findings("--controller=http://127.0.0.1:9/services/fleet/")

    assert found["controller"]["ok"] is False
    assert "127.0.0.1:9" in found["controller"]["text"]


async def test_a_wrong_path_is_no_controller(patient: Patient) -> None:
    """Something answers there, and it is not the fleet service."""
    found = await patient.findings(f"--controller=http://127.0.0.1:{patient.port}/x/")

    assert found["controller"]["ok"] is False
    assert "404" in found["controller"]["text"]


async def test_a_clock_that_is_wrong_is_worth_knowing(patient: Patient) -> None:
    """It stops no work, and explains odd times."""
    patient.ahead = timedelta(minutes=5)
    found = await patient.findings()

    assert found["clock"]["ok"] is None
    assert "ahead of" in found["clock"]["text"]


async def test_an_agent_that_was_started_with_a_controller_goes_there(
    patient: Patient,
) -> None:
    """Where it was never enrolled, as beside ``make run``, and where it was elsewhere."""
    folder = StateFolder(patient.folder)
    started = f"http://127.0.0.1:{patient.port}/services/fleet/"
    folder.note_run(controller=started, ca_file=None)
    for enrolled in ({}, {"controller": "http://127.0.0.1:9/services/fleet/"}):
        folder.enrolment.write_text(json.dumps(enrolled))
        found = await patient.findings()
        assert found["controller"]["ok"] is True, found
    found = await patient.findings("--controller=http://127.0.0.1:8/services/fleet/")
    assert "127.0.0.1:8" in found["controller"]["text"], "what is asked for goes first"


async def test_a_run_that_is_over_speaks_for_no_computer_that_was_enrolled_since(
    patient: Patient,
) -> None:
    """What enrolment told is later than what an agent was told that has ended."""
    StateFolder(patient.folder).note_run(
        controller="http://127.0.0.1:9/services/fleet/", ca_file=None
    )
    patient.lock.close()
    found = await patient.findings()
    assert found["agent"]["ok"] is False
    assert found["controller"]["ok"] is True


async def test_an_agent_that_runs_is_found_with_its_folder(
    patient: Patient, tmp_path: Path
) -> None:
    """By this user's processes, and by the lock in the folder that they name."""
    patient.lock.close()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fleet_agent.cli", "run", "--simulation"),
        *("--state-dir", patient.folder.name, "--owner=ada"),
        f"--controller=http://127.0.0.1:{patient.port}/services/fleet/",
        cwd=tmp_path,
    )
    try:
        folder = StateFolder(patient.folder)
        await until_so(
            lambda: folder.last_run.exists() or process.returncode is not None,
            "the agent runs",
        )
        assert process.returncode is None
        assert patient.folder in running_folders()
    finally:
        process.terminate()
        await process.wait()
    assert patient.folder not in running_folders()


@pytest.mark.parametrize("count", [0, 1, 2])
async def test_where_nothing_is_in_the_usual_folder_agents_are_looked_for(
    patient: Patient,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    count: int,
) -> None:
    """The only one is meant; of several, the command for each is told."""
    usual = patient.folder.with_name("usual")
    folders = [patient.folder, patient.folder.with_name("other one")][:count]
    monkeypatch.setattr(settings, "default_state_folder", lambda: usual)
    monkeypatch.setattr(running, "default_state_folder", lambda: usual)
    monkeypatch.setattr(running, "running_folders", lambda: folders)
    words = ["--FleetAgent.drivers=simulation", "--controller=http://127.0.0.1:9/x/"]
    await asyncio.to_thread(doctor.main, words)
    said = capsys.readouterr().out
    if count == 1:
        assert f"ok  state folder: {patient.folder}" in said
        return
    assert f"NO  state folder: {usual} is not there" in said
    assert ("--state-dir '" in said) is (count == 2)
    if count:
        assert f"fleet-agent doctor --state-dir {patient.folder}, or" in said


@pytest.mark.parametrize("count", [0, 1, 2])
async def test_the_only_agent_is_drained_wherever_it_works(
    patient: Patient,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    count: int,
) -> None:
    """Of several, the command for each is told, and none is drained."""
    usual = patient.folder.with_name("usual")
    folders = [patient.folder, patient.folder.with_name("other one")][:count]
    monkeypatch.setattr(state_folder, "default_state_folder", lambda: usual)
    monkeypatch.setattr(running, "default_state_folder", lambda: usual)
    monkeypatch.setattr(running, "running_folders", lambda: folders)
    assert (drain.main([]) == 0) is (count == 1)
    assert StateFolder(patient.folder).drained.exists() is (count == 1)
    said = capsys.readouterr()
    if count == 1:
        assert f"fleet-agent resume --state-dir {patient.folder}\n" in said.out
    elif count:
        assert (
            f"name one: fleet-agent drain --state-dir {patient.folder}, or" in said.err
        )
    else:
        assert str(usual) in said.err


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        ("python -m fleet_agent.cli run --state-dir /a", "/a"),
        ("/x/bin/python3 /x/bin/fleet-agent run --state-dir=/b --simulation", "/b"),
        ("fleet-agent run --FleetAgent.state_dir=/c", "/c"),
        ("fleet-agent run", None),
        ("fleet-agent doctor --state-dir /a", ""),
        ("vim fleet-agent", ""),
        ("", ""),
    ],
)
async def test_the_command_line_of_an_agent_names_its_folder(
    line: str, folder: str | None
) -> None:
    """Whichever way it was started; other commands are no agents."""
    words = line.split()
    assert is_agent(words) is (folder != "")
    if folder != "":
        wanted = Path(folder) if folder else default_state_folder()
        assert state_folder_of(words) == wanted


async def test_the_owners_own_terms_are_told(patient: Patient) -> None:
    """A machine that its owner drained is closed by that, and by nothing else."""
    (patient.folder / "drained").touch()
    status, said = await patient.doctor("--FleetAgent.max_cpu=0.5")

    assert status == 1
    assert "takes nothing new now" in said
    assert "fleet-agent resume" in said
    assert "ok  owner's terms: cores: at most 0.5" in said
