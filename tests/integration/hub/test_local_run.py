"""``jupyter-fleet run`` on real processes: what it starts, and what it leaves."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import fleet
import pytest
import requests
from fleet_parts import NEEDS_HUB
from patience import PATIENCE, free_port
from plain_hub import REPOSITORY
from whole_run import Run


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.timeout(300),
]
RUN = (
    *("run", "--simulation", "--owner", "ada"),
    *("--config", str(REPOSITORY / "jupyterhub_config.py")),
)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """A run that is not started yet."""
    prepared = Run(tmp_path, free_port(), *RUN)
    yield prepared
    prepared.close()


def log_in(port: int, name: str, code: str) -> requests.Response:
    """Log in with a code; return the page that follows."""
    session = requests.Session()
    page = session.get(f"http://127.0.0.1:{port}/hub/login", timeout=PATIENCE)
    xsrf = re.search(r'name="_xsrf" value="([^"]+)"', page.text)
    assert xsrf, page.text
    return session.post(
        f"http://127.0.0.1:{port}/hub/login?next=%2Fhub%2Fspawn",
        data={"username": name, "password": code, "_xsrf": xsrf[1]},
        timeout=PATIENCE,
    )


def test_a_run_tells_how_to_log_in_and_leaves_nothing_behind(run: Run) -> None:
    """It prints address, name and a code that opens the door once; Ctrl-C ends it all."""
    told = run.start_and_wait()
    code = re.search(r"Code +([A-Z0-9-]+)", told)
    assert code, told
    assert f"http://127.0.0.1:{run.port}" in told
    assert re.search(r"Name +ada\b", told)

    first, second = (log_in(run.port, "ada", code[1]) for _ in range(2))
    assert "Choose a server" in first.text
    assert second.status_code == 403

    assert run.end(signal.SIGINT) == 0
    assert run.still_alive() == []
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", run.port))
    private = [run.folder / "data" / name for name in ("hub", "controller", "agent")]
    for path in [*private, *(file for folder in private for file in folder.iterdir())]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_command_for_another_code_is_printed_as_it_works(run: Run) -> None:
    """Typed as it stands there, with a name, it makes a code that opens the door."""
    told = run.start_and_wait()
    printed = re.search(r"Another code, .*?: +(.+)$", told, re.MULTILINE)
    assert printed, told
    code = subprocess.run(
        printed[1].replace("NAME", "bob"),
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert "Choose a server" in log_in(run.port, "bob", code).text
    assert run.end(signal.SIGINT) == 0


def test_a_killed_run_takes_everything_with_it(run: Run) -> None:
    """The kernel tells the parts that their run is gone, and the next run starts."""
    run.start_and_wait()
    run.end(signal.SIGKILL)
    fleet.wait_until(lambda: not run.still_alive(), "everything has ended")

    run.start_and_wait()
    assert run.end(signal.SIGTERM) == 0


def test_what_a_power_cut_left_is_cleared_by_the_next_run(run: Run) -> None:
    """A proxy that lost run and Hub at once does not keep the port."""
    run.start_and_wait()
    hub, proxy = run.part("jupyterhub"), run.part("/configurable-http-proxy")
    assert run.process is not None
    os.kill(run.process.pid, signal.SIGSTOP)
    hub.kill()
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait(PATIENCE)
    assert proxy.is_running()

    told = run.start_and_wait()
    assert "An earlier run was killed" in told
    assert run.end(signal.SIGTERM) == 0


def test_a_dead_hub_and_a_dead_agent_are_started_again(run: Run) -> None:
    """The run goes on, says so, and the page is there again."""
    run.start_and_wait()
    for part in ("jupyterhub", "fleet_agent.cli"):
        run.part(part).kill()
    fleet.wait_until(
        lambda: run.told().count("starting it again") == 2, "both are started again"
    )
    fleet.wait_until(lambda: _is_up(run.port), "the Hub answers again")
    assert run.end(signal.SIGTERM) == 0
    assert run.still_alive() == []


def test_a_taken_port_is_said_with_the_way_out(run: Run) -> None:
    """Another program's port is not swapped silently, and nothing is started."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", run.port))
        other.listen()
        run.start()
        assert run.process is not None
        assert run.process.wait(PATIENCE) == 1
    assert f"port {run.port} is taken" in run.told()
    assert "--port" in run.told()


def test_a_second_run_in_the_same_folder_is_refused(run: Run, tmp_path: Path) -> None:
    """Two runs would fight over one store."""
    run.start_and_wait()
    second = Run(tmp_path, free_port(), *RUN)
    second.log = tmp_path / "second.log"
    second.start()
    assert second.process is not None
    assert second.process.wait(PATIENCE) == 1
    assert "another run uses" in second.told()
    run.end(signal.SIGTERM)


def _is_up(port: int) -> bool:
    with suppress(requests.RequestException):
        url = f"http://127.0.0.1:{port}/hub/health"
        return requests.get(url, timeout=PATIENCE).status_code == 200
    return False
