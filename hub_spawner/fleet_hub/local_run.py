"""``jupyter-fleet run``: a whole fleet on one machine, for as long as it is wanted.

Starts JupyterHub, which starts its proxy and the controller; enrols the machines and
starts their agents; says how to log in; and ends all of it, notebooks included.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

from fleet_hub.command_places import BESIDE
from fleet_hub.local_plan import LocalMachine, RunError, RunOptions
from fleet_hub.local_processes import (
    Child,
    RunRecord,
    adopt_orphans,
    end_all,
    end_orphans,
    proxy_left_behind,
    reap_orphans,
)
from fleet_hub.local_services import (
    Ports,
    answers,
    choose_ports,
    enrol,
)
from fleet_hub.login_codes import LoginCodes
from fleet_hub.places import (
    CONTROLLER_PORT_VARIABLE,
    DATA_DIR_VARIABLE,
    OWNER_VARIABLE,
    private_folder,
    write_private,
)
from fleet_hub.proxy_program import find_proxy
from fleet_hub.quick_end import end_quickly


UP_SECONDS: Final = 180.0
"""A busy machine takes its time to import JupyterHub; a program that ends is noticed."""
LEFTOVER_SECONDS: Final = 20.0
AGENT_STOP_SECONDS: Final = 30.0
HUB_STOP_SECONDS: Final = 20.0
RESTARTS: Final = 3
RESTART_WINDOW_SECONDS: Final = 60.0
WATCH_SECONDS: Final = 0.2


class _ToldToEndError(Exception):
    """Somebody pressed Ctrl-C."""


class LocalRun:
    """One run, from start to end; used once."""

    def __init__(self, options: RunOptions) -> None:
        """Prepare a run; nothing is started yet."""
        self._options = options
        self._places = options.places
        self._record = RunRecord(options.places.root / "run.json")
        self._ending = threading.Event()
        self._ends: deque[float] = deque(maxlen=RESTARTS)

    def run(self) -> int:
        """Run until told to end; return the exit status.

        Raises:
            RunError: it cannot begin or go on.
        """
        end_quickly()
        self._places.make()
        with self._only_run():
            self._clear_leftovers()
            ports = choose_ports(self._options.port)
            adopt_orphans()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, self._end)
            hub = self._hub(ports)
            agents = [self._agent(each, ports) for each in self._options.machines]
            try:
                self._bring_up(hub, agents, ports)
                self._watch([hub, *agents])
            finally:
                self._stop([*agents, hub])
        return 0

    # ------------------------------------------------------------------ begin

    def _bring_up(self, hub: Child, agents: list[Child], ports: Ports) -> None:
        self._say("Starting JupyterHub …")
        hub.start()
        self._note(hub)
        if not self._up(hub, ports):
            return
        for machine, agent in zip(self._options.machines, agents, strict=True):
            token = enrol(
                self._places,
                ports,
                name=machine.name,
                owner=machine.owner,
                provider=machine.provider,
            )
            write_private(machine.folder / "token", f"{token}\n")
            agent.start()
        self._note(hub, *agents)
        if self._options.when_up is not None:
            with suppress(_ToldToEndError):
                self._options.when_up(
                    self._places, ports, lambda: self._check([hub, *agents])
                )
        if not self._ending.is_set():
            self._say(self._welcome(ports))

    def _check(self, children: list[Child]) -> None:
        if self._ending.is_set():
            raise _ToldToEndError
        _refuse_ended(children)

    def _up(self, hub: Child, ports: Ports) -> bool:
        """Wait until Hub and controller answer; False: told to end meanwhile."""
        deadline = time.monotonic() + UP_SECONDS
        # in this order: the proxy logs each request that comes before the Hub's route
        wanted = deque([ports.controller_health, ports.hub_health])
        while not self._ending.wait(WATCH_SECONDS):
            while wanted and answers(wanted[0]):
                wanted.popleft()
            if not wanted:
                return True
            _refuse_ended([hub])
            if time.monotonic() > deadline:
                raise RunError(
                    f"{wanted[0]} did not answer within {UP_SECONDS:.0f} s.\n"
                    f"{_tail(hub)}"
                )
        return False

    def _hub(self, ports: Ports) -> Child:
        if find_proxy() is None:
            raise RunError(
                "configurable-http-proxy is missing. In a checkout run `make setup`; "
                "elsewhere `npm install -g configurable-http-proxy` (Node 20 or later)."
            )
        command = [
            *(sys.executable, "-m", "jupyterhub"),
            *("--config", str(self._options.config_file)),
            f"--JupyterHub.bind_url={ports.public_url}",
            f"--JupyterHub.hub_port={ports.hub}",
            f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{ports.proxy}",
        ]
        return Child(
            "JupyterHub",
            command,
            log=self._log(self._places.hub / "hub.log"),
            environment=self._environment(ports),
            stop_seconds=HUB_STOP_SECONDS,
        )

    def _agent(self, machine: LocalMachine, ports: Ports) -> Child:
        private_folder(machine.folder)
        command = [
            *(sys.executable, "-m", "fleet_agent.cli", "run"),
            *("--state-dir", str(machine.folder)),
            *("--controller", ports.service_url),
            *("--owner", machine.owner),
            "--stop-workloads-on-exit",
            *machine.arguments,
        ]
        return Child(
            f"the agent of {machine.name}",
            command,
            log=self._log(machine.folder / "agent.log"),
            environment=self._environment(ports),
            stop_seconds=AGENT_STOP_SECONDS,
        )

    def _environment(self, ports: Ports) -> dict[str, str]:
        tools = Path(sys.executable).parent
        return os.environ | {
            DATA_DIR_VARIABLE: str(self._places.root),
            CONTROLLER_PORT_VARIABLE: str(ports.controller),
            OWNER_VARIABLE: self._options.owner,
            "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }

    def _log(self, path: Path) -> Path | None:
        if self._options.verbose:
            return None
        # A run's log tells of this run; the one before is kept beside it.
        if path.exists():
            path.replace(path.with_suffix(".log.1"))
        path.touch(mode=0o600)
        return path

    def _welcome(self, ports: Ports) -> str:
        owner = self._options.owner
        code = LoginCodes(self._places.login_codes).make(owner)
        logs = (
            ""
            if self._options.verbose
            else f"\n  Logs      {self._places.hub}, {self._places.agent}"
        )
        return f"""
JupyterHub Fleet runs on this machine.

  Open      {ports.public_url}
  Name      {owner}
  Code      {code}   (valid once, for a day)

{self._options.hint}

  Another code, for you or anyone else:   {self._code_command()}{logs}

{self._options.end}
"""

    def _code_command(self) -> str:
        """Return the command that makes a code, as it works in this very folder."""
        words = [_own_command(), "login-code", "NAME"]
        found = BESIDE.absolute().parent / ".fleet" if BESIDE.is_file() else None
        if self._places.root != found:
            words += ["--data-dir", shlex.quote(str(self._places.root))]
        return " ".join(words)

    # ------------------------------------------------------------------ go on

    def _watch(self, children: list[Child]) -> None:
        """Restart what ends by itself, a few times, until told to end."""
        while not self._ending.wait(WATCH_SECONDS):
            reap_orphans(children)
            for child in children:
                if child.status is None:
                    continue
                self._count_end(child)
                self._say(f"{child.name} ended ({child.status}); starting it again.")
                child.start()
                self._note(*children)

    def _count_end(self, child: Child) -> None:
        now = time.monotonic()
        full = len(self._ends) == RESTARTS
        if full and now - self._ends[0] < RESTART_WINDOW_SECONDS:
            raise RunError(f"{child.name} keeps ending by itself.\n{_tail(child)}")
        self._ends.append(now)

    # -------------------------------------------------------------------- end

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._ending.set()

    def _stop(self, children: list[Child]) -> None:
        """End the children in order, and then whatever is left of them."""
        if any(child.status is None and child.pid for child in children):
            self._say("\nEnding notebooks, agent and JupyterHub …")
        # The agents end together, and report it while the controller is there.
        for child in children[:-1]:
            child.tell_to_end()
        for child in children:
            if not child.stop():
                self._say(f"{child.name} did not end in time and was killed.")
        end_orphans()
        self._record.clear()

    def _note(self, *children: Child) -> None:
        self._record.write(child.pid for child in children if child.pid)

    def _clear_leftovers(self) -> None:
        left = self._record.still_there()
        left += proxy_left_behind(self._places.hub / "proxy.pid")
        if left:
            self._say("An earlier run was killed; ending what it left behind …")
            end_all(left, patience_seconds=LEFTOVER_SECONDS)
        self._record.clear()

    @contextmanager
    def _only_run(self) -> Iterator[None]:
        path = self._places.root / "run.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RunError(
                    f"another run uses {self._places.root} already. End it with Ctrl-C "
                    "where it was started, or choose another folder with --data-dir."
                ) from error
            yield
        finally:
            os.close(descriptor)

    def _say(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _own_command() -> str:
    """Return how this command is called from the folder where it was started."""
    own = Path(sys.executable).with_name("jupyter-fleet")
    found = shutil.which("jupyter-fleet")
    if found is not None and Path(found) == own:
        return own.name
    here = Path.cwd()
    return str(own.relative_to(here) if own.is_relative_to(here) else own)


def _refuse_ended(children: list[Child]) -> None:
    for child in children:
        if child.status is not None:
            raise RunError(f"{child.name} ended at its start.\n{_tail(child)}")


def _tail(child: Child) -> str:
    lines = child.last_lines()
    return f"The end of {child.log}:\n{lines}" if lines else "Its output is above."
