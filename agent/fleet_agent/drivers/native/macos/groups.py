"""How does a workload on a Mac end, and how do we know that it has?

macOS has no namespaces.  The server leads a process group, in which its kernels and
terminals are; what leaves the group is found by the mark in its environment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress

import psutil

from fleet_agent.drivers.base import Condition, Standing
from fleet_agent.drivers.native.explain import Memory, why_it_ended
from fleet_agent.drivers.native.macos.planning import MARK
from fleet_agent.drivers.native.macos.records import MacRecord
from fleet_agent.drivers.native.runs import RunFolder
from fleet_agent.processes import (
    ProcessName,
    is_alive,
    name_of,
    send_signal,
    until_gone,
)
from fleet_contracts.reasons import Explanation, Reason


class Groups:
    """Waits for ends and brings them about; knows which processes are the agent's own."""

    def __init__(self) -> None:
        """No process is the agent's own yet."""
        self._own: dict[int, subprocess.Popen[bytes]] = {}
        self._codes: dict[ProcessName, int] = {}

    def adopt(self, process: subprocess.Popen[bytes]) -> None:
        """Take care that a child of this agent does not stay a zombie."""
        self._own[process.pid] = process

    async def wait(self, record: MacRecord, folder: RunFolder) -> Condition:
        """Return when the workload is gone, with why."""
        if record.leader is not None:
            await until_gone(record.leader)
        # The server ended; whatever it left behind ends now.
        await _sweep(record)
        return self.condition(record, folder)

    async def stop(self, record: MacRecord, *, grace_seconds: float) -> None:
        """End the workload: by asking its server, and by force after the grace."""
        leader = record.leader
        if leader is not None and grace_seconds > 0:
            send_signal(leader, signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_seconds):
                    await until_gone(leader)
        await _sweep(record)
        if leader is not None:
            self._reap(leader)
            self._codes.pop(leader, None)

    def condition(self, record: MacRecord, folder: RunFolder) -> Condition:
        """Return why a workload that is gone is gone."""
        code = self._reap(record.leader) if record.leader else None
        if code is None:
            return Condition(
                standing=Standing.GONE,
                explanation=Explanation(
                    reason=Reason.SERVER_EXITED,
                    detail="The notebook ended while no agent watched it, so nobody "
                    "knows how. The files are kept.",
                ),
            )
        return Condition(
            standing=Standing.GONE,
            exit_code=code,
            # macOS counts no kills for lack of memory that an agent could read.
            explanation=why_it_ended(
                code, folder.read_log_tail(), memory=Memory.ENOUGH
            ),
        )

    def _reap(self, leader: ProcessName) -> int | None:
        """Return the exit code of a child that has ended; None: not ours, or alive.

        It is told as often as it is asked for, until the workload is stopped.
        """
        process = self._own.get(leader.pid)
        code = None if process is None else process.poll()
        if process is not None and code is not None:
            del self._own[process.pid]
            # As a shell says it: 128 and the signal's number.
            self._codes[leader] = code if code >= 0 else 128 - code
        return self._codes.get(leader)


async def _sweep(record: MacRecord) -> None:
    """End all that is left of a workload, however often it multiplies meanwhile."""
    if not record.is_of_this_boot:
        return
    while True:
        if record.leader is not None:
            _kill_group(record.leader)
        left = await asyncio.to_thread(_marked, record.run)
        if record.leader is not None and is_alive(record.leader):
            left.append(record.leader)
        if not left:
            return
        for process in left:
            send_signal(process, signal.SIGKILL)
        await asyncio.gather(*(until_gone(process) for process in left))


def _kill_group(leader: ProcessName) -> None:
    """Kill the group that *leader* leads or led.

    No system gives a pid to a new process while a group is called by it.  So a
    stranger with the leader's pid means that the group is gone.
    """
    holder = name_of(leader.pid)
    if holder is None or holder == leader:
        # macOS says "not permitted" of a group whose processes are all zombies.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader.pid, signal.SIGKILL)


def _marked(run: str) -> list[ProcessName]:
    """Return the living processes that carry the mark of *run*."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK) != run:
                continue
            name = name_of(process.pid)
            if name is not None:
                found.append(name)
    return found
