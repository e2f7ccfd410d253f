"""kill -9 of ``fleet-agent enrol`` before each thing it does: the old enrolment or the new.

A token is never left beside what another enrolment told: it would go to an earlier
controller, or its agent would serve an earlier owner.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import stat
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import killed_command
import pytest
import pytest_asyncio
from fleet_service import Service, a_service
from patience import PATIENCE

from fleet_agent.state_folder import StateFolder


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

DEEDS = range(1, 15)
"""More than the command does, so that the last ones get through."""
USED = "it was used, has expired, or was never given"
KILLED = -9


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service on loopback."""
    async with a_service(tmp_path) as running:
        yield running


@pytest_asyncio.fixture
async def commands() -> AsyncIterator[Process]:
    """Return what runs the agent's commands."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, killed_command.__file__, stdin=PIPE, stdout=PIPE
    )
    yield process
    assert process.stdin is not None
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


class Computer:
    """A computer with a folder for its agent's state."""

    def __init__(self, service: Service, commands: Process, name: str) -> None:
        """Keep its state in a folder of its own."""
        self._service, self._commands = service, commands
        self.name = name
        self.state = StateFolder(service.folder / name)

    async def agent(self, *arguments: str, fuse: int = 0) -> tuple[int, str]:
        """Return how one of the agent's commands ended, and what it complained of."""
        folder = str(self.state.path)
        told = {
            "fuse": fuse,
            "folder": folder,
            "argv": [*arguments, "--state-dir", folder],
        }
        assert self._commands.stdin is not None
        assert self._commands.stdout is not None
        self._commands.stdin.write(f"{json.dumps(told)}\n".encode())
        line = await asyncio.wait_for(self._commands.stdout.readline(), PATIENCE)
        answer = json.loads(line)
        return answer["status"], answer["complained"]

    async def code(self, owner: str) -> str:
        """Return a fresh code for this computer as *owner*'s."""
        body = {"name": self.name, "owner": owner, "local": True}
        answer = await self._service.json("internal/codes", method="POST", body=body)
        return str(answer["code"])

    async def enrol(self, code: str, fuse: int = 0) -> tuple[int, str]:
        """Run the command; it is killed before its *fuse*-th deed."""
        where = ("--controller", self._service.url)
        return await self.agent("enrol", *where, "--code", code, fuse=fuse)

    def token(self) -> str | None:
        """Return the token that is kept; None: there is none."""
        return self.state.token.read_text() if self.state.token.exists() else None


async def enrolled_anew(before: Computer, computer: Computer, fuse: int) -> int:
    """Kill the command once, look at what is left, and go on; return how it ended."""
    shutil.copytree(before.state.path, computer.state.path)
    code = await computer.code("bob")
    status, _ = await computer.enrol(code, fuse)
    told, token = computer.state.read_enrolment(), computer.token()
    if token is None:
        exit_status, complained = await computer.agent("run")
        assert exit_status > 0
        assert "Enrol this machine with `fleet-agent enrol`" in complained
    else:
        is_old = token == before.token()
        assert told["owner"] == ("alice" if is_old else "bob"), fuse
    for path in computer.state.path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    again, complained = await computer.enrol(code)
    if again != 0:
        assert USED in complained
        assert await computer.enrol(await computer.code("bob")) == (0, "")
    assert computer.state.read_enrolment()["machine"] == computer.name
    assert computer.token() not in {None, before.token()}
    assert not list(computer.state.path.glob(".*.new"))
    return status


async def test_an_enrolment_that_is_killed_leaves_the_old_one_or_the_new_one(
    service: Service, commands: Process
) -> None:
    """And can be made again, with the same code or with the next, under the same name.

    The computer was alice's, and is to be bob's under another name.
    """
    before = Computer(service, commands, "before")
    assert await before.enrol(await before.code("alice")) == (0, "")
    ends = [
        await enrolled_anew(before, Computer(service, commands, f"box-{fuse}"), fuse)
        for fuse in DEEDS
    ]
    assert ends == sorted(ends)
    assert set(ends) == {KILLED, 0}
    answer: dict[str, Any] = await service.json("internal/machines")
    owners = [(item["name"], item["owner"]) for item in answer["machines"]]
    bobs = [(f"box-{fuse}", "bob") for fuse in DEEDS]
    assert sorted(owners) == sorted([("before", "alice"), *bobs])
