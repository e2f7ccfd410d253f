"""Runs a command in its sandbox, and tells it what to become."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from fleet_agent.drivers.native.inside.channel import HEADER_BYTES
from fleet_agent.drivers.native.runs import RunFolder


_LINE_BYTES = 4096


class ConfinedEndedError(Exception):
    """The process in the sandbox ended before it said what it was waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What the process is to become; its environment holds secrets."""

    environment: Mapping[str, str]
    arguments: Sequence[str]
    listener: socket.socket
    check: Sequence[str] = ()
    """What its Python has to run with success before; empty: nothing."""


class OutlivingProcess(subprocess.Popen[bytes]):
    """A child that may go on when the agent, and with it this object, ends."""

    @override
    def __del__(self) -> None:
        """Do not warn: that it still runs is what it is for."""


class Confined:
    """A process that starts in its sandbox and waits for its launch message.

    It outlives this object and the agent once launched, and ends by itself if the
    agent ends before.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], channel: socket.socket
    ) -> None:
        """Own both ends that the agent has."""
        self.process = process
        self._channel = channel
        self._said = b""
        self._facts: dict[str, dict[str, Any]] = {}

    @classmethod
    def spawn(
        cls,
        command: Sequence[str],
        *,
        run: RunFolder,
        environment: Mapping[str, str],
        status_fd: int | None = None,
    ) -> Confined:
        """Start *command*, which logs into *run*, and reports to *status_fd* if given."""
        ours, theirs = socket.socketpair()
        log = os.open(run.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            process = OutlivingProcess(
                command,
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                env=environment,
                cwd="/",
                pass_fds=() if status_fd is None else (status_fd,),
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(log)
        ours.setblocking(False)  # noqa: FBT003 - positional only
        return cls(process, ours)

    async def heard(self, event: str) -> dict[str, Any]:
        """Return what the process said about *event*, once it has.

        One event at a time is waited for.

        Raises:
            ConfinedEndedError: it ended, or closed the channel.
        """
        loop = asyncio.get_running_loop()
        while event not in self._facts:
            part = await self._receive(loop)
            if not part:
                raise ConfinedEndedError(f"it ended before it was {event}")
            *lines, rest = (self._said + part).split(b"\n")
            self._said = rest
            for line in lines:
                facts: dict[str, Any] = json.loads(line)
                self._facts[facts["event"]] = facts
        return self._facts[event]

    async def launch(self, launch: Launch) -> None:
        """Send the launch message; the process goes on by itself from here.

        Raises:
            ConfinedEndedError: it is gone.
        """
        body = json.dumps(
            {
                "environment": dict(launch.environment),
                "arguments": list(launch.arguments),
                "check": list(launch.check),
            }
        ).encode()
        header = len(body).to_bytes(HEADER_BYTES)
        try:
            socket.send_fds(self._channel, [header], [launch.listener.fileno()])
            await asyncio.get_running_loop().sock_sendall(self._channel, body)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ConfinedEndedError("it ended before it was launched") from error

    async def _receive(self, loop: asyncio.AbstractEventLoop) -> bytes:
        try:
            return await loop.sock_recv(self._channel, _LINE_BYTES)
        except ConnectionResetError:
            return b""

    def close(self) -> None:
        """Close the channel: a process that was not launched ends."""
        self._channel.close()
