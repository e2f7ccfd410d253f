"""How a sandboxed process is told what to launch.

Standard input is a socket to the agent.  The process says what it is ready for, one
JSON document a line; the agent sends one launch message, together with the listening
socket.  If the agent dies first the socket ends, and so does the process: nothing runs
that no ledger knows.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from typing import Any


HEADER_BYTES = 4


@dataclass(frozen=True, slots=True)
class Launch:
    """What to become."""

    environment: dict[str, str]
    arguments: list[str]
    listener: socket.socket
    check: list[str]


class Channel:
    """The sandboxed process's end."""

    def __init__(self, fd: int = 0) -> None:
        """Talk over *fd*."""
        self._fd = fd
        self._socket = socket.socket(fileno=os.dup(fd))

    def say(self, **facts: Any) -> None:
        """Tell the agent some facts."""
        self._socket.sendall(f"{json.dumps(facts)}\n".encode())

    def receive(self) -> Launch | None:
        """Return the launch message, closing the channel; None: it will not come."""
        header, descriptors, _, _ = socket.recv_fds(self._socket, HEADER_BYTES, 1)
        if len(header) < HEADER_BYTES or not descriptors:
            return None
        message = json.loads(self._read(int.from_bytes(header)))
        self._close()
        return Launch(
            environment=message["environment"],
            arguments=message["arguments"],
            listener=socket.socket(fileno=descriptors[0]),
            check=message["check"],
        )

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise EOFError("the launch message is cut off")
            parts += part
        return bytes(parts)

    def _close(self) -> None:
        """Leave nothing of it to kernels and terminals."""
        self._socket.close()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, self._fd)
        os.close(nothing)
