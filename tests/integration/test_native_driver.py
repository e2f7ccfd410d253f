"""What a notebook on this machine is like: its files, packages, terminal and ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from fake_hub import FakeHub
from native_machine import (
    OWNER,
    TOKEN,
    a_notebook,
    last_handle,
    native_settings,
)
from notebook_client import Kernel, NotebookServer, type_into_terminal
from other_agent import OtherAgent
from patience import PATIENCE
from small_environments import make_wheel
from tornado.httpclient import HTTPClientError

from fleet_agent.drivers.base import DriverError, Handle, Job, Standing
from fleet_agent.drivers.native.driver import NativeDriver
from fleet_agent.drivers.native.runs import RunFolder
from fleet_contracts.reasons import Reason


pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.asyncio,
    pytest.mark.timeout(600),
]


IMPORT_EVERYTHING = """
import sys
sys.path.extend(sys.argv[1:])
from fleet_agent.drivers.native.inside.server import import_everything
import_everything()
"""


class Machine:
    """One agent's driver with its state and a Hub."""

    def __init__(self, state: Path, hub: FakeHub) -> None:
        """Work in *state*."""
        self.state = state
        self.hub = hub
        self.driver = NativeDriver(native_settings(state))
        self._started: list[Handle] = []

    def job(self, epoch: int = 1) -> Job:
        """Return the owner's notebook, for the *epoch*th time."""
        return Job(allocation="notebook", epoch=epoch, spec=a_notebook(self.hub))

    async def start(self, epoch: int = 1) -> tuple[Handle, NotebookServer]:
        """Start it."""
        job = self.job(epoch)
        await self.driver.prepare(job, lambda progress: None)
        handle = await last_handle(self.driver, job)
        self._started.append(handle)
        return handle, NotebookServer(handle.url or "", TOKEN)

    async def python(self) -> Path:
        """Return the Python of the notebook's environment."""
        environment = await self.driver.provide("jupyter", lambda progress: None)
        return environment.tree / "bin" / "python"

    async def close(self) -> None:
        """Stop whatever still runs."""
        for handle in self._started:
            await self.driver.stop(handle, grace_seconds=0)


@pytest_asyncio.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """A machine without a notebook."""
    state = tmp_path / "agent"
    state.mkdir(mode=0o700)
    async with FakeHub() as hub:
        machine = Machine(state, hub)
        yield machine
        await machine.close()


async def test_files_and_installed_packages_stay_when_the_server_is_stopped(
    machine: Machine, tmp_path: Path
) -> None:
    """``pip install`` goes into the notebook folder, and comes first on the path."""
    make_wheel(tmp_path / "wheels", "ownpackage", {"ownpackage.py": "answer = 42\n"})
    wheel = next((tmp_path / "wheels").glob("*/*.whl"))
    handle, server = await machine.start()
    folder = machine.state / "notebooks" / "anna-default"
    (folder / wheel.name).write_bytes(wheel.read_bytes())
    async with Kernel(server) as kernel:
        said = await kernel.run(
            "import pathlib, subprocess\n"
            "pathlib.Path('note.txt').write_text('kept')\n"
            "print(subprocess.run(['pip', 'install', '--no-index', "
            f"'{wheel.name}'], capture_output=True, text=True).stdout)\n"
            "import ownpackage\n"
            "print(ownpackage.__file__)\n"
        )
    await machine.driver.stop(handle, grace_seconds=20)
    _, server = await machine.start(epoch=2)
    async with Kernel(server) as kernel:
        again = await kernel.run(
            "import ownpackage, pip, IPython\n"
            "print(open('note.txt').read(), ownpackage.answer)\n"
            "print(pip.__file__)"
        )

    assert "Successfully installed ownpackage-1.0" in said
    assert "/home/jovyan/.fleet/python3" in said
    assert again.splitlines()[0] == "kept 42"
    assert again.splitlines()[1].startswith("/opt/fleet/environment/")


async def test_a_terminal_works_in_the_notebook_folder(machine: Machine) -> None:
    """With the user's own Python first, on a terminal of its own."""
    _, server = await machine.start()

    shown = await type_into_terminal(
        server, "pwd; tty; which python; whoami; echo do''ne", until="done"
    )

    assert "/home/jovyan" in shown.split()
    assert "/dev/pts/0" in shown
    assert "/home/jovyan/.fleet/python3" in shown
    assert OWNER in shown.split()


async def test_the_server_accepts_its_owner_and_nobody_else(machine: Machine) -> None:
    """Not a user it was shared with, not an admin, not a stranger."""
    _, server = await machine.start()
    machine.hub.add_token("bert-token", "bert", "access:servers")

    assert (await server.ask("api/status"))["kernels"] == 0
    for token in ("bert-token", "nobody-token"):
        with pytest.raises(HTTPClientError) as refused:
            await NotebookServer(server.url, token).ask("api/status")
        assert refused.value.code == 403


async def test_a_launch_message_is_in_no_command_line_and_no_file(
    machine: Machine,
) -> None:
    """The token of the server is in its own environment and nowhere else."""
    handle, _ = await machine.start()

    seen = await asyncio.to_thread(_readable_by_others, handle, machine.state)

    assert TOKEN.encode() not in seen
    assert TOKEN not in json.dumps(handle.data)


async def test_a_daemon_that_the_user_left_behind_ends_with_the_server(
    machine: Machine,
) -> None:
    """Gone means that nothing in the namespace runs any more."""
    handle, server = await machine.start()
    async with Kernel(server) as kernel:
        pid = await kernel.run(
            "import subprocess\n"
            "p = subprocess.Popen(['sleep', '987654'], start_new_session=True)\n"
            "print(p.pid)"
        )
    daemon = await asyncio.to_thread(_find, "987654", handle.data["first"][0])
    assert pid.strip().isdigit()
    waiting = asyncio.create_task(machine.driver.wait(handle))

    # The server ends by itself, as if it had crashed: the daemon would live on.
    os.kill(_server_of(handle), signal.SIGKILL)
    condition = await waiting

    assert condition.standing is Standing.GONE
    assert condition.exit_code == 137
    assert condition.explanation is not None
    assert condition.explanation.reason is Reason.SERVER_EXITED
    assert not psutil.pid_exists(daemon)


@pytest.mark.parametrize("who", ["supervisor", "first"])
async def test_a_sandbox_that_loses_a_process_of_its_own_is_gone_as_a_whole(
    machine: Machine, who: str
) -> None:
    """Nothing runs on whose end nobody would see, and the end is told as what it was."""
    handle, _ = await machine.start()
    inside = psutil.Process(_server_of(handle))
    waiting = asyncio.create_task(machine.driver.wait(handle))

    os.kill(handle.data[who][0], signal.SIGKILL)
    condition = await waiting
    await machine.driver.stop(handle, grace_seconds=0)

    assert condition.standing is Standing.GONE
    assert condition.explanation is not None
    assert condition.explanation.reason is Reason.SERVER_EXITED
    assert not inside.is_running()
    assert RunFolder.all(machine.state / "runs") == []


async def test_a_notebook_survives_the_kill_of_its_agent(
    machine: Machine,
) -> None:
    """A new agent finds it running, hears of its end, and can tell how it ended."""
    async with OtherAgent(machine.state) as agent:
        handle = await agent.start(a_notebook(machine.hub), "notebook")
        await agent.kill()

    server = NotebookServer(handle.url or "", TOKEN)
    recovered = await machine.driver.recover(handle)
    answer = await server.ask("api/status")
    waiting = asyncio.create_task(machine.driver.wait(handle))
    os.kill(_server_of(handle), signal.SIGTERM)
    condition = await waiting
    await machine.driver.stop(handle, grace_seconds=0)

    assert recovered.standing is Standing.RUNNING
    assert answer["kernels"] == 0
    assert (condition.standing, condition.exit_code) == (Standing.GONE, 0)
    assert RunFolder.all(machine.state / "runs") == []


@pytest.mark.parametrize("handles", [1, 2])
async def test_an_agent_killed_while_it_starts_a_notebook_leaves_nothing_running(
    machine: Machine, handles: int
) -> None:
    """What waits for its launch message ends when nobody can send it any more."""
    spec = a_notebook(machine.hub)
    async with OtherAgent(machine.state) as agent:
        await agent.say(do="start", allocation="notebook", spec=spec.model_dump())
        for _ in range(handles):
            handle = Handle(allocation="notebook", **await agent.hear())
            if _ + 1 < handles:
                await agent.say(do="go on")
        await agent.kill()

    condition = await machine.driver.wait(handle)
    await machine.driver.stop(handle, grace_seconds=0)

    assert condition.standing is Standing.GONE
    assert RunFolder.all(machine.state / "runs") == []


async def test_after_a_reboot_a_notebook_is_gone_and_the_reason_is_said(
    machine: Machine,
) -> None:
    """The pids of another boot mean nothing, so nothing is signalled."""
    handle, server = await machine.start()
    other_boot = replace(handle, data={**handle.data, "boot": "of-yesterday"})

    condition = await machine.driver.recover(other_boot)

    assert condition.standing is Standing.GONE
    assert condition.explanation is not None
    assert condition.explanation.reason is Reason.MACHINE_REBOOTED
    assert (await server.ask("api/status"))["kernels"] == 0


async def test_a_pid_that_was_reused_is_not_touched(machine: Machine) -> None:
    """The start time tells the processes apart."""
    sleeper = await asyncio.create_subprocess_exec("sleep", "60")
    handle, _ = await machine.start()
    data = {**handle.data, "first": [sleeper.pid, 1], "supervisor": [sleeper.pid, 1]}

    condition = await machine.driver.recover(replace(handle, data=data))

    assert condition.standing is Standing.GONE
    assert sleeper.returncode is None
    sleeper.kill()
    await sleeper.wait()


async def test_a_machine_that_cannot_make_the_sandbox_says_so(
    machine: Machine,
) -> None:
    """A fault of the machine is a reason too, never a bare system error."""
    await machine.driver.prepare(machine.job(), lambda progress: None)
    (machine.state / "notebooks").write_text("in the way")

    with pytest.raises(DriverError) as refused:
        await last_handle(machine.driver, machine.job())

    assert refused.value.explanation.reason is Reason.START_FAILED
    assert "in the way" not in (refused.value.explanation.detail or "")
    assert RunFolder.all(machine.state / "runs") == []


async def test_a_start_asks_no_other_program_for_anything(
    machine: Machine, tmp_path: Path
) -> None:
    """Lab asks node at each start if it is there, which takes longer than our own part."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("node", "npm"):
        (programs / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/asked\n")
        (programs / name).chmod(0o755)
    python = await machine.python()

    # Read-only as in the sandbox: Lab would write into its environment.
    view = ("bwrap", "--ro-bind", "/", "/", "--bind", str(tmp_path), str(tmp_path))
    process = await asyncio.create_subprocess_exec(
        *(*view, "--dev", "/dev", "--proc", "/proc"),
        *(python, "-I", "-c", IMPORT_EVERYTHING, *filter(None, sys.path)),
        env={"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path)},
    )

    assert await process.wait() == 0
    assert not (tmp_path / "asked").exists()


async def test_the_hub_hears_of_activity_from_inside(machine: Machine) -> None:
    """The Hub's own variables pass through."""
    await machine.start()

    await asyncio.wait_for(machine.hub.heard.wait(), PATIENCE)

    assert "" in machine.hub.activity[0]["servers"]


def _readable_by_others(handle: Handle, state: Path) -> bytes:
    """Return all command lines, what the sandbox tool has, and what lies on disk."""
    first = handle.data["first"][0]
    parts = [Path(f"/proc/{first}/environ").read_bytes()]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            parts.append(path.read_bytes())
        except OSError:
            continue
    parts += [
        path.read_bytes()
        for path in state.rglob("*")
        # The private temp is the user's own, as is the server's runtime file there.
        if path.is_file() and "tmp" not in path.relative_to(state).parts
    ]
    return b"\n".join(parts)


def _server_of(handle: Handle) -> int:
    """Return the pid of the notebook server itself."""
    children = Path("/proc").glob("[0-9]*/stat")
    first = handle.data["first"][0]
    for stat in children:
        with suppress(OSError):  # it may have ended since it was listed
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == first:
                return int(stat.parent.name)
    raise AssertionError("the server is gone")


def _find(word: str, first: int) -> int:
    """Return the pid of the process with *word* in its arguments, inside."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes():
                return int(path.parent.name)
        except OSError:
            continue
    raise AssertionError(f"no such process in the sandbox of {first}")
