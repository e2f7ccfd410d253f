"""The simulation driver: real processes, real addresses, pretended notebooks.

It runs nothing of the user's, so it serves anybody.  Demonstrations use it to show a
fleet on one computer, and tests to make every step slow, late or wrong on purpose.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, ClassVar

from typing_extensions import override

from fleet_agent.drivers.base import (
    Condition,
    Driver,
    DriverError,
    Handle,
    Job,
    ProgressSink,
    Standing,
)
from fleet_agent.drivers.simulation_behaviour import Behaviour, Fault, Pause
from fleet_agent.processes import (
    ProcessName,
    boot_id,
    is_alive,
    name_of,
    send_signal,
    until_gone,
)
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Progress
from fleet_contracts.workloads import DriverName


_POLL_SECONDS = 0.02
_STEPS = 4
"""Into how many steps the pretended preparation is cut."""


class SimulationDriver(Driver):
    """Pretends to run notebooks, in processes that outlive the agent."""

    name: ClassVar[DriverName] = DriverName.SIMULATION

    def __init__(self, folder: Path, behaviour: Behaviour | None = None) -> None:
        """Keep one folder per allocation below *folder*."""
        self._folder = folder
        self._behaviour = behaviour or Behaviour()
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._failed_stops: set[str] = set()

    @override
    async def prepare(self, job: Job, progress: ProgressSink) -> None:
        fault = self._behaviour.fault
        for done in range(_STEPS):
            progress(Progress(step="pretend_to_prepare", done=done, total=_STEPS))
            await asyncio.sleep(self._behaviour.prepare_seconds / _STEPS)
        await self._pause(Pause.PREPARING, progress)
        if fault is Fault.PREPARE_HANGS:
            await asyncio.Event().wait()
        if fault is Fault.PREPARE_FAILS:
            raise DriverError(
                Reason.PREPARE_FAILED,
                "the simulation was told to fail",
                detail="The simulated preparation failed on purpose.",
            )

    @override
    async def start(self, job: Job, progress: ProgressSink) -> AsyncIterator[Handle]:
        folder = self._folder / _folder_name(job)
        data: dict[str, Any] = {"folder": folder.name, "boot": boot_id()}
        yield Handle(allocation=job.allocation, data=data)
        _make_empty(folder)
        await self._pause(Pause.FOLDER_MADE, progress)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            child = self._spawn(folder, listening.fileno())
            named = False
            try:
                await self._pause(Pause.SPAWNED, progress)
                process = name_of(child.pid)
                if process is None:
                    raise DriverError(Reason.START_FAILED, "the server died at once")
                data = data | {"process": process.as_data()}
                yield Handle(allocation=job.allocation, data=data)
                named = True
            finally:
                if not named:
                    await self._discard(child)
            await self._pause(Pause.NAMED, progress)
            self._tell(child, job, folder, listening.fileno())
        if self._behaviour.fault is Fault.START_FAILS:
            raise DriverError(
                Reason.START_FAILED,
                "the simulation was told to fail",
                detail="The simulated server failed to start on purpose.",
            )
        prefix = _prefix_of(job)
        await self._until_answering(port, prefix, process)
        await self._pause(Pause.ANSWERING, progress)
        url = f"http://127.0.0.1:{port}{prefix}"
        yield Handle(allocation=job.allocation, data=data, url=url)
        await self._pause(Pause.ADDRESS_TOLD, progress)

    @override
    async def stop(self, handle: Handle, *, grace_seconds: float) -> None:
        if (
            self._behaviour.fault is Fault.STOP_FAILS_ONCE
            and handle.allocation not in self._failed_stops
        ):
            self._failed_stops.add(handle.allocation)
            raise OSError("the simulation was told to fail a stop")
        process = _process_of(handle)
        if process is not None and grace_seconds > 0:
            send_signal(process, signal.SIGTERM)
            with suppress(TimeoutError):
                await asyncio.wait_for(until_gone(process), grace_seconds)
        if process is not None:
            send_signal(process, signal.SIGKILL)
            await until_gone(process)
            self._reap(process.pid)
        folder = self._folder / handle.data["folder"]
        await _until_unlocked(folder)
        shutil.rmtree(folder, ignore_errors=True)

    @override
    async def wait(self, handle: Handle) -> Condition:
        process = _process_of(handle)
        if process is not None:
            await until_gone(process)
        return self._gone(handle)

    @override
    async def recover(self, handle: Handle) -> Condition:
        if handle.data["boot"] != boot_id():
            return Condition(
                standing=Standing.GONE,
                explanation=Explanation(reason=Reason.MACHINE_REBOOTED),
            )
        process = _process_of(handle)
        if process is None or not is_alive(process):
            return self._gone(handle)
        standing = Standing.STARTING if handle.url is None else Standing.RUNNING
        return Condition(standing=standing)

    @override
    async def close(self) -> None:
        for child in self._children.values():
            # Not ours to wait for any more: the next agent finds it by its name.
            child.returncode = child.poll() or 0
            if child.stdin is not None:
                child.stdin.close()
        self._children.clear()

    # -------------------------------------------------------------------- helpers

    async def _pause(self, here: Pause, progress: ProgressSink) -> None:
        if self._behaviour.pause_at is here:
            progress(Progress(step=f"paused_{here.value}"))
            await asyncio.Event().wait()

    def _spawn(self, folder: Path, descriptor: int) -> subprocess.Popen[bytes]:
        """Start the server's process, which waits for its launch line.

        It holds the folder's lock from its first moment: whoever can take the lock
        knows that no process of this allocation is left.
        """
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with (folder / "log").open("ab") as log:
                child = subprocess.Popen(
                    [
                        sys.executable,
                        "-P",
                        "-m",
                        "fleet_agent.drivers.simulation_server",
                    ],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env={"PATH": os.defpath},
                    cwd=folder,
                    pass_fds=(descriptor, lock),
                    start_new_session=True,
                )
        finally:
            os.close(lock)
        self._children[child.pid] = child
        return child

    def _tell(
        self, child: subprocess.Popen[bytes], job: Job, folder: Path, descriptor: int
    ) -> None:
        behaviour = self._behaviour
        hangs = behaviour.fault is Fault.START_HANGS
        crashes = behaviour.fault is Fault.SERVER_CRASHES
        launch = {
            "socket": descriptor,
            "prefix": _prefix_of(job),
            "title": f"{job.spec.profile} ({job.spec.class_name})",
            "status_file": str(folder / "status"),
            "start_seconds": 10**6 if hangs else behaviour.start_seconds,
            "stop_seconds": behaviour.stop_seconds,
            "run_seconds": behaviour.run_seconds,
            "crashes": crashes,
            "ignores_stop": behaviour.fault is Fault.SERVER_IGNORES_STOP,
        }
        assert child.stdin is not None  # noqa: S101 - opened as a pipe
        with suppress(BrokenPipeError), child.stdin as stdin:
            _write_line(stdin, launch)

    async def _discard(self, child: subprocess.Popen[bytes]) -> None:
        """End a process that no handle names."""
        child.kill()
        await asyncio.to_thread(child.wait)
        self._reap(child.pid)

    async def _until_answering(
        self, port: int, prefix: str, process: ProcessName
    ) -> None:
        answer = asyncio.create_task(_ask(port, prefix))
        death = asyncio.create_task(until_gone(process))
        try:
            await asyncio.wait({answer, death}, return_when="FIRST_COMPLETED")
            if not answer.done() or answer.exception() is not None:
                raise DriverError(
                    Reason.START_FAILED, "the simulated server ended while starting"
                )
        finally:
            answer.cancel()
            death.cancel()
            await asyncio.wait({answer, death})

    def _gone(self, handle: Handle) -> Condition:
        process = _process_of(handle)
        code = None if process is None else self._reap(process.pid)
        if code is None:
            with suppress(OSError, ValueError):
                status = self._folder / handle.data["folder"] / "status"
                code = int(status.read_text(encoding="ascii"))
        return Condition(standing=Standing.GONE, exit_code=code)

    def _reap(self, pid: int) -> int | None:
        """Return the exit status of a child that is dead; None: it is no child."""
        child = self._children.pop(pid, None)
        if child is None:
            return None
        if child.stdin is not None:
            child.stdin.close()
        code = child.wait()
        return code if code >= 0 else 128 - code


def _process_of(handle: Handle) -> ProcessName | None:
    data = handle.data.get("process")
    return None if data is None else ProcessName.from_data(data)


def _folder_name(job: Job) -> str:
    """Return a name that no allocation's id can lead out of our folder with."""
    return sha256(f"{job.allocation}/{job.epoch}".encode()).hexdigest()[:24]


def _prefix_of(job: Job) -> str:
    return job.spec.environment.get("JUPYTERHUB_SERVICE_PREFIX", "/")


def _make_empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)


def _write_line(stdin: IO[bytes], launch: dict[str, Any]) -> None:
    stdin.write(json.dumps(launch).encode() + b"\n")
    stdin.flush()


async def _ask(port: int, prefix: str) -> None:
    """Return when a server on *port* has answered one request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"HEAD {prefix} HTTP/1.0\r\n\r\n".encode())
        if not await reader.readline():
            raise ConnectionError("the server closed the connection")
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _until_unlocked(folder: Path) -> None:
    """Return when no process holds the lock of *folder*.

    A process without a name is one whose agent died before it could be told to
    serve; it ends by itself as soon as it notices.
    """
    try:
        lock = os.open(folder / "lock", os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        while not _can_lock(lock):  # noqa: ASYNC110 - flock cannot be awaited
            await asyncio.sleep(_POLL_SECONDS)
    finally:
        os.close(lock)


def _can_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
