"""An agent in a process of its own: to be killed, or to have no rights."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Self

from native_machine import SHARED, native_settings, unheard

from fleet_agent.drivers.base import Handle, Job
from fleet_agent.drivers.native.driver import NativeDriver
from fleet_contracts.workloads import WorkloadSpec


NOBODY = 1_999_999_999
"""A uid that owns nothing on any machine."""


class OtherAgent:
    """Driven over its standard streams, one JSON document a line."""

    def __init__(self, state: Path, *, unprivileged: bool = False) -> None:
        """Prepare to run in *state*; *unprivileged*: as a user without any rights."""
        self._state = state
        self._drop = unprivileged and os.geteuid() == 0
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        """Start it."""
        # Built here, so that an agent without rights finds it.
        store = NativeDriver(native_settings(self._state))
        await store.provide("jupyter", unheard)
        before = _without_rights(self._state) if self._drop else []
        self._process = await asyncio.create_subprocess_exec(
            *before,
            sys.executable,
            __file__,
            str(self._state),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "FLEET_TEST_ENVIRONMENTS": str(SHARED),
            },
            limit=1 << 20,
            start_new_session=True,
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Kill it; what it runs stays."""
        await self.kill()

    async def kill(self) -> None:
        """Kill it, as kill -9 does."""
        if self._process is not None and self._process.returncode is None:
            # Its view of the machine may be a process of its own, before it.
            os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.communicate()

    async def say(self, **command: Any) -> None:
        """Send one command."""
        if self._process is None or self._process.stdin is None:
            raise AssertionError("the agent does not run")
        self._process.stdin.write(f"{json.dumps(command)}\n".encode())
        await self._process.stdin.drain()

    async def hear(self) -> dict[str, Any]:
        """Return its next answer."""
        if self._process is None or self._process.stdout is None:
            raise AssertionError("the agent does not run")
        line = await asyncio.wait_for(self._process.stdout.readline(), 300)
        if not line:
            raise AssertionError("the agent ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def start(self, spec: WorkloadSpec, allocation: str = "a") -> Handle:
        """Start *spec* and return the handle that has its URL."""
        await self.say(do="start", allocation=allocation, spec=spec.model_dump())
        while True:
            handle = Handle(allocation=allocation, **await self.hear())
            if handle.url:
                return handle
            await self.say(do="go on")

    async def stop(self, handle: Handle, grace_seconds: float = 5) -> None:
        """Stop what *handle* names."""
        await self.say(do="stop", data=handle.data, grace_seconds=grace_seconds)
        await self.hear()


def _without_rights(state: Path) -> list[str]:
    """Return the prefix that runs a command as a user who may do nothing.

    The Python that runs the tests may lie in a closed home, so the command gets a view
    of the machine in which the way there is open, and nothing else of that home.
    """
    for path in [state, *state.rglob("*")]:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    for path in (SHARED / "environments", *(SHARED / "environments").iterdir()):
        path.chmod(0o755)
    wanted = [Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[2], state]
    command = ["bwrap", "--dev-bind", "/", "/"]
    for closed in sorted(
        {
            min(_closed(path), key=lambda parent: len(parent.parts))
            for path in wanted
            if _closed(path)
        }
    ):
        command += ["--perms", "0755", "--tmpfs", str(closed)]
        below = [path for path in wanted if path.is_relative_to(closed)]
        for folder in sorted(
            {
                parent
                for path in below
                for parent in path.parents
                if parent.is_relative_to(closed) and parent != closed
            }
        ):
            command += ["--perms", "0755", "--dir", str(folder)]
        for path in below:
            command += ["--bind", str(path), str(path)]
    command += ["--", "setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY)]
    return [*command, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]


def _closed(path: Path) -> list[Path]:
    return [parent for parent in path.parents if parent.stat().st_mode & 0o005 != 0o005]


def _answer(**facts: Any) -> None:
    sys.stdout.write(f"{json.dumps(facts)}\n")
    sys.stdout.flush()


async def _start(driver: NativeDriver, command: dict[str, Any]) -> None:
    spec = WorkloadSpec.model_validate(command["spec"])
    job = Job(allocation=command["allocation"], epoch=1, spec=spec)
    await driver.prepare(job, unheard)
    async for handle in driver.start(job, unheard):
        _answer(data=handle.data, url=handle.url)
        if handle.url is None:
            await asyncio.to_thread(sys.stdin.readline)


async def _obey(state: Path) -> None:
    driver = NativeDriver(native_settings(state))
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        if command["do"] == "start":
            await _start(driver, command)
        elif command["do"] == "stop":
            handle = Handle(allocation="a", data=command["data"])
            await driver.stop(handle, grace_seconds=command["grace_seconds"])
            _answer(stopped=True)


if __name__ == "__main__":
    asyncio.run(_obey(Path(sys.argv[1])))
