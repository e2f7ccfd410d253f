"""The simulation driver: real processes, real addresses, pretended notebooks.

It runs nothing of the user's, so it serves anybody.  Demonstrations use it to show a
fleet on one computer, and tests to make every step slow, late or wrong on purpose.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

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
from fleet_agent.drivers.common.listening import Addresses, at_address, listen
from fleet_agent.drivers.simulation_behaviour import (
    Behaviour,
    Fault,
    Pause,
    Simulation,
)
from fleet_agent.drivers.simulation_process import (
    Children,
    until_answered,
    until_unlocked,
)
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


_STEPS = 4
"""Into how many steps the pretended preparation is cut."""
_EVER = 10**6
"""Seconds that a server takes which never answers."""


class SimulationDriver(Driver):
    """Pretends to run notebooks, in processes that outlive the agent."""

    name: ClassVar[DriverName] = DriverName.SIMULATION

    def __init__(
        self,
        folder: Path,
        simulation: Simulation | None = None,
        addresses: Addresses | None = None,
    ) -> None:
        """Keep one folder per allocation below *folder*, and serve at *addresses*."""
        self._addresses = addresses or Addresses()
        self._folder = folder
        self._simulation = simulation or Simulation()
        self._children = Children()
        self._failed_stops: set[str] = set()

    @override
    async def prepare(self, job: Job, progress: ProgressSink) -> None:
        behaviour = self._behaviour(job)
        for done in range(_STEPS):
            progress(Progress(step="pretend_to_prepare", done=done, total=_STEPS))
            await asyncio.sleep(behaviour.prepare_seconds / _STEPS)
        await _pause(Pause.PREPARING, behaviour, progress)
        if behaviour.fault is Fault.PREPARE_HANGS:
            await asyncio.Event().wait()
        if behaviour.fault is Fault.PREPARE_FAILS:
            raise _failure(
                Reason.PREPARE_FAILED, "The simulated preparation failed on purpose."
            )

    @override
    async def start(self, job: Job, progress: ProgressSink) -> AsyncIterator[Handle]:
        behaviour = self._behaviour(job)
        folder = self._folder / _folder_name(job)
        data: dict[str, Any] = {"folder": folder.name, "boot": boot_id()}
        yield Handle(allocation=job.allocation, data=data)
        _make_empty(folder)
        await _pause(Pause.FOLDER_MADE, behaviour, progress)
        with listen(self._addresses) as listening:
            port = listening.getsockname()[1]
            pid = self._children.spawn(folder, listening.fileno())
            named = False
            try:
                await _pause(Pause.SPAWNED, behaviour, progress)
                process = name_of(pid)
                if process is None:
                    raise _failure(Reason.START_FAILED, _ENDED_EARLY)
                data = data | {"process": process.as_data()}
                yield Handle(allocation=job.allocation, data=data)
                named = True
            finally:
                if not named:
                    await self._children.discard(pid)
            await _pause(Pause.NAMED, behaviour, progress)
            launch = _launch(job, behaviour, folder, listening.fileno())
            self._children.tell(pid, launch)
        if behaviour.fault is Fault.START_FAILS:
            raise _failure(
                Reason.START_FAILED, "The simulated server failed to start on purpose."
            )
        await _until_serving(job, (self._addresses.local, port), process)
        await _pause(Pause.ANSWERING, behaviour, progress)
        url = at_address(
            f"http://host{_prefix_of(job)}", self._addresses.advertise, port
        )
        yield Handle(allocation=job.allocation, data=data, url=url)
        await _pause(Pause.ADDRESS_TOLD, behaviour, progress)

    @override
    async def stop(self, handle: Handle, *, grace_seconds: float) -> None:
        self._fail_once(handle)
        process = _process_of(handle)
        if process is not None and grace_seconds > 0:
            send_signal(process, signal.SIGTERM)
            with suppress(TimeoutError):
                await asyncio.wait_for(until_gone(process), grace_seconds)
        if process is not None:
            send_signal(process, signal.SIGKILL)
            await until_gone(process)
            self._children.reap(process.pid)
        folder = self._folder / handle.data["folder"]
        await until_unlocked(folder)
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
        self._children.release()

    # -------------------------------------------------------------------- helpers

    def _behaviour(self, job: Job) -> Behaviour:
        return self._simulation.of(job.spec.runtime.ref)

    def _fail_once(self, handle: Handle) -> None:
        if (
            self._simulation.fault is Fault.STOP_FAILS_ONCE
            and handle.allocation not in self._failed_stops
        ):
            self._failed_stops.add(handle.allocation)
            raise OSError("the simulation was told to fail a stop")

    def _gone(self, handle: Handle) -> Condition:
        process = _process_of(handle)
        code = None if process is None else self._children.reap(process.pid)
        if code is None:
            with suppress(OSError, ValueError):
                status = self._folder / handle.data["folder"] / "status"
                code = int(status.read_text(encoding="ascii"))
        if code == 0:
            return Condition(standing=Standing.GONE, exit_code=0)
        return Condition(
            standing=Standing.GONE,
            exit_code=code,
            explanation=Explanation(
                reason=Reason.SERVER_EXITED,
                detail=None if code is None else f"exit status {code}",
            ),
        )


_ENDED_EARLY = "The simulated server ended before it answered."


def _failure(reason: Reason, detail: str) -> DriverError:
    return DriverError(reason, detail, detail=detail)


async def _pause(here: Pause, behaviour: Behaviour, progress: ProgressSink) -> None:
    if behaviour.pause_at is here:
        progress(Progress(step=f"paused_{here.value}"))
        await asyncio.Event().wait()


async def _until_serving(
    job: Job, where: tuple[str, int], process: ProcessName
) -> None:
    """Return once the server answers.

    Raises:
        DriverError: it ended, or did not answer within the job's start time.
    """
    answer = asyncio.create_task(until_answered(where, _prefix_of(job)))
    death = asyncio.create_task(until_gone(process))
    try:
        done, _ = await asyncio.wait(
            {answer, death},
            return_when="FIRST_COMPLETED",
            timeout=job.spec.start_seconds,
        )
        if not done:
            raise _failure(
                Reason.START_TIMEOUT, "The simulated server did not answer in time."
            )
        if not answer.done() or answer.exception() is not None:
            raise _failure(Reason.START_FAILED, _ENDED_EARLY)
    finally:
        answer.cancel()
        death.cancel()
        await asyncio.wait({answer, death})


def _launch(
    job: Job, behaviour: Behaviour, folder: Path, descriptor: int
) -> dict[str, Any]:
    """Return what a server's process is told."""
    fault = behaviour.fault
    return {
        "socket": descriptor,
        "prefix": _prefix_of(job),
        "title": f"{job.spec.profile} ({job.spec.class_name})",
        "status_file": str(folder / "status"),
        "start_seconds": _EVER
        if fault is Fault.START_HANGS
        else behaviour.start_seconds,
        "dies_early": fault is Fault.SERVER_DIES_EARLY,
        "stop_seconds": behaviour.stop_seconds,
        "run_seconds": behaviour.run_seconds,
        "crashes": fault is Fault.SERVER_CRASHES,
        "ignores_stop": fault is Fault.SERVER_IGNORES_STOP,
    }


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
