"""Two Hubs side by side: the fleet's, and one that starts the same Lab the plain way."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import requests


sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from fleet import Fleet, wait_until
from native_fleet import NATIVE_PATIENCE, add_native_machine, keep_environments
from plain_hub import PlainHub, plain_hub


# A run that is ended must end its Hubs as well: let ``with`` blocks see it.
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))

OWNER = "ada"
OPTIONS = {"user_options": {"profile": "cpu-small"}}
SLOW = 'c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 300}\n'
"""So that the answer to a start is its end, on both Hubs."""

PLAIN = """
from fleet_hub.hub_database import use_write_ahead_log

use_write_ahead_log()
c.JupyterHub.db_url = "sqlite:///jupyterhub.sqlite"
c.Spawner.cmd = [{python!r}, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root"]
c.Spawner.http_timeout = 120
c.Spawner.start_timeout = 120
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the Hubs, as a benchmark drives it."""

    name: str
    hub: psutil.Process
    others: Callable[[], list[psutil.Process]]
    """The further processes that take part in a start, for what it costs in all."""
    settle: Callable[[], None]
    """Return once nothing of the last stop goes on any more."""
    call: Callable[[str], requests.Response]
    """Make a request with this method to the owner's server at the Hub's API."""

    def start(self) -> float:
        """Start the owner's server; return the seconds until it is ready."""
        began = time.perf_counter()
        answer = self.call("POST")
        seconds = time.perf_counter() - began
        assert answer.status_code == requests.codes.created, answer.text
        return seconds

    def stop(self) -> float:
        """Stop it; return the seconds until the Hub says that it is gone."""
        began = time.perf_counter()
        answer = self.call("DELETE")
        assert answer.status_code in {202, 204}, answer.text
        if answer.status_code == requests.codes.accepted:
            wait_until(lambda: self.call("DELETE").status_code == 204, "stopped")
        return time.perf_counter() - began

    def hub_cpu_seconds(self) -> float:
        """Return the CPU time that the Hub has used so far."""
        return _cpu_seconds(self.hub)

    def all_cpu_seconds(self) -> float:
        """Return the CPU time of the Hub and all that takes part, so far."""
        return sum(_cpu_seconds(process) for process in [self.hub, *self.others()])


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def fleet_side(folder: Path, *, standby: bool = False) -> Iterator[tuple[Side, Fleet]]:
    """A Hub with the fleet and one native machine, its environment built."""
    with Fleet(folder=folder, catalog=None, more_config=SLOW) as fleet:
        machine = add_native_machine(fleet, owner=OWNER, standby=standby)
        # The environment may have to be built, which no request waits for.
        with suppress(requests.ReadTimeout):
            fleet.ask(OWNER, OPTIONS["user_options"]).raise_for_status()
        fleet.wait_ready(OWNER, patience=NATIVE_PATIENCE)
        keep_environments(machine)
        fleet.stop_server(OWNER)
        hub, agent = fleet._hub, fleet.machines["box"].process  # noqa: SLF001 - the harness keeps them to itself
        assert hub is not None
        assert agent is not None
        agent_process = psutil.Process(agent.pid)
        yield (
            Side(
                name="fleet",
                hub=psutil.Process(hub.pid),
                others=lambda: [*fleet.controller_processes(), agent_process],
                settle=lambda: _settle(agent_process) if standby else None,
                call=lambda method: fleet.api(
                    method, f"users/{OWNER}/server", json=OPTIONS
                ),
            ),
            fleet,
        )


def environment_python(fleet: Fleet) -> Path:
    """Return the interpreter of the environment that the fleet's notebooks run in."""
    environments = fleet.machines["box"].folder / "native/environments"
    newest = max(
        environments.glob("*/tree/bin/python"), key=lambda path: path.lstat().st_mtime
    )
    return newest.parent.resolve() / newest.name


@contextmanager
def simple_side(folder: Path, python: Path) -> Iterator[Side]:
    """A Hub with SimpleLocalProcessSpawner and the same settings and interpreter."""
    with plain_hub(folder, PLAIN.format(python=str(python)) + SLOW) as hub:
        hub.browser(OWNER)
        yield Side(
            name="simple",
            hub=psutil.Process(pid_of(hub)),
            others=list,
            settle=lambda: None,
            call=lambda method: hub.api(method, f"users/{OWNER}/server"),
        )


def _settle(agent: psutil.Process) -> None:
    """Wait until what the agent keeps ready has imported, and waits."""

    def imported() -> bool:
        before = busy()
        time.sleep(0.3)
        return 0.2 < before == busy()

    def busy() -> float:
        with suppress(psutil.Error):
            return sum(map(_cpu_seconds, agent.children(recursive=True)))
        return 0

    wait_until(imported, "a process is ready")


def pid_of(hub: PlainHub) -> int:
    """Return the process of a Hub that this one started."""
    for process in psutil.Process().children():
        if process.cwd() == str(hub.folder):
            return process.pid
    raise LookupError("the Hub's process is gone")
