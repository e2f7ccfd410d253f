"""How does a workload end, and how do we know that it has?

A workload is gone when the first process of its namespace is gone: the kernel ends
everything in it with that process.  The server's own end is not enough, since a kernel
or a daemon of the user may live on in the namespace.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from contextlib import ExitStack, suppress

from fleet_agent.drivers.base import Condition, Standing
from fleet_agent.drivers.native import limits
from fleet_agent.drivers.native.explain import Memory, why_it_ended
from fleet_agent.drivers.native.processes import (
    Process,
    ProcessId,
    children,
    identify,
)
from fleet_agent.drivers.native.records import Record, out_of_memory_kills
from fleet_agent.drivers.native.runs import RunFolder


_REAP_SECONDS = 2.0


class Ending:
    """Waits for ends and brings them about; knows which processes are the agent's own."""

    def __init__(self) -> None:
        """No process is the agent's own yet."""
        self._own: dict[int, subprocess.Popen[bytes]] = {}

    def adopt(self, process: subprocess.Popen[bytes]) -> None:
        """Take care that a child of this agent does not stay a zombie."""
        self._own[process.pid] = process

    async def wait(self, record: Record, folder: RunFolder) -> Condition:
        """Return when the workload is gone, with why."""
        with ExitStack() as held:
            supervisor = _hold(held, record.open_supervisor())
            first = _hold(held, record.open_first())
            watched = [process for process in (supervisor, first) if process]
            if supervisor:
                await _any_ended(watched)
            # The server ended; whatever it left behind inside ends now.
            await _kill(first, supervisor)
        return self.condition(record, folder)

    async def stop(
        self, record: Record, folder: RunFolder, *, grace_seconds: float
    ) -> None:
        """End the workload: by asking its server, and by force after the grace."""
        with ExitStack() as held:
            supervisor = _hold(held, record.open_supervisor())
            first = _hold(held, record.open_first())
            if first and supervisor and grace_seconds > 0:
                await _ask(first, supervisor, grace_seconds)
            await _kill(first, supervisor)
        self._reap(record.supervisor)

    async def undo(
        self, record: Record, folder: RunFolder, *, grace_seconds: float
    ) -> None:
        """End the workload as ``stop`` does, and remove its folder.

        Finds what an agent that died could not write down.
        """
        complete = await asyncio.to_thread(record.completed, folder)
        await self.stop(complete, folder, grace_seconds=grace_seconds)
        await asyncio.to_thread(_remove, folder)

    def condition(self, record: Record, folder: RunFolder) -> Condition:
        """Return why a workload that is gone is gone."""
        code = self._reap(record.supervisor)
        recorded = folder.read_status().exit_code
        exit_code = recorded if recorded is not None else code
        return Condition(
            standing=Standing.GONE,
            exit_code=exit_code,
            explanation=why_it_ended(
                exit_code,
                folder.read_log_tail(),
                memory=_memory(record, folder),
            ),
        )

    def _reap(self, supervisor: ProcessId | None) -> int | None:
        """Return the exit code of a child that has ended; None: not ours, or alive."""
        process = self._own.get(supervisor.pid) if supervisor else None
        if process is None:
            return None
        code = process.poll()
        if code is None:
            return None
        del self._own[process.pid]
        # Ended by a signal from outside: that says nothing about the server.
        return code if code >= 0 else None


def _remove(folder: RunFolder) -> None:
    limits.remove(folder.groups)
    folder.remove()


def _memory(record: Record, folder: RunFolder) -> Memory:
    """Say whether the kernel has ended anything of the workload for lack of memory."""
    own = limits.out_of_memory_kills(folder.groups)
    if own:
        return Memory.CLASS_RAN_OUT
    # Without a count of its own the machine's has to do.
    if own is None and out_of_memory_kills() > record.out_of_memory_kills:
        return Memory.MACHINE_RAN_OUT
    return Memory.ENOUGH


def _hold(held: ExitStack, process: Process | None) -> Process | None:
    return held.enter_context(process) if process else None


async def _ask(first: Process, supervisor: Process, grace_seconds: float) -> None:
    """Ask the server to end, and wait for it or for the end of the grace."""
    for pid in children(first.identity.pid)[:1]:
        identity = identify(pid)
        server = Process.open(identity) if identity else None
        if server:
            with server:
                server.send(signal.SIGTERM)
    try:
        async with asyncio.timeout(grace_seconds):
            await _any_ended([first, supervisor])
    except TimeoutError:
        pass


async def _kill(first: Process | None, supervisor: Process | None) -> None:
    """End everything inside, then the sandbox tool if it does not end by itself."""
    if first:
        first.send(signal.SIGKILL)
        await first.ended()
    if supervisor:
        # Killed at once it would leave its child to whoever adopts orphans here.
        with suppress(TimeoutError):
            async with asyncio.timeout(_REAP_SECONDS if first else 0):
                await supervisor.ended()
        supervisor.send(signal.SIGKILL)
        await supervisor.ended()


async def _any_ended(processes: list[Process]) -> None:
    waiting = [asyncio.ensure_future(process.ended()) for process in processes]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
