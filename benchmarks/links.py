"""Simulated agents that speak straight to a service, and the services they speak to."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import resource
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from fleet_contracts.capabilities import (
    AgentDriver,
    Fact,
    HostFacts,
    Observed,
    WorkerCapabilities,
)
from fleet_contracts.catalog import Relation
from fleet_contracts.protocol import PROTOCOL, Hello, Inventory, encode
from fleet_contracts.workloads import DriverName
from fleet_hub.adapters.sqlite_store import SqliteStore
from fleet_hub.controller.lifecycle import hash_of
from fleet_hub.controller.ports import Change
from fleet_hub.controller.records import MachineRecord
from fleet_hub.places import Places, secret_of


PREFIX = "/services/fleet/"
GIB = 1 << 30
CATALOG = """
classes:
  - name: one
    title: One core
    cpu: 1
    memory: 1G
    limit: 8h
runtimes:
  - name: stub
    title: A stub
    accelerators: [cpu]
    ref: stub
profiles:
  - name: lab
    title: Lab
    classes: [one]
    runtimes: [stub]
"""


def name_of(number: int) -> str:
    """Return the name of a simulated machine."""
    return f"m{number:05}"


def token_of(name: str) -> str:
    """Return the token that *name*'s agent shows."""
    return f"token-of-{name}"


def a_free_port() -> int:
    """Return a port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def capabilities(cores: int) -> dict[str, Any]:
    """Return what a machine of *cores* cores says of itself."""
    now = datetime.now(UTC)
    return WorkerCapabilities(
        host=HostFacts(
            os=Fact(value="linux"),
            architecture=Fact(value="x86_64"),
            cores_allowed_milli=Fact(value=cores * 1000),
            memory_allowed_bytes=Fact(value=64 * GIB),
            disk_free_bytes=Fact(value=500 * GIB),
        ),
        drivers=(
            AgentDriver(
                name=DriverName.SIMULATION,
                usable=True,
                observed=Observed(source="simulation", observed_at=now),
            ),
        ),
        settled=True,
    ).model_dump(mode="json")


class Peer(asyncio.Protocol):
    """One WebSocket, from the client's side: small enough for thousands of them."""

    def __init__(self, target: str, token: str, heard: Callable[[str], None]) -> None:
        """Dial *target*, show *token*, and hand on every text that is *heard*."""
        self._target = target
        self._token = token
        self._heard = heard
        self._buffer = b""
        self._is_open = False
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.closed = asyncio.Event()
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the WebSocket."""
        self._transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        self._transport.write(
            f"GET {self._target} HTTP/1.1\r\nHost: fleet\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n"
            f"Authorization: Bearer {self._token}\r\n\r\n".encode()
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """The link is gone."""
        self.closed.set()
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("closed before it opened"))

    def data_received(self, data: bytes) -> None:
        """Take in frames; texts are handed on and pings are answered."""
        self._buffer += data
        if not self._is_open:
            head, separator, rest = self._buffer.partition(b"\r\n\r\n")
            if not separator:
                return
            if b" 101 " not in head.split(b"\r\n")[0]:
                self.opened.set_exception(ConnectionError(head.decode("latin-1")))
                return
            self._is_open, self._buffer = True, rest
            self.opened.set_result(None)
        while frame := self._next_frame():
            code, payload = frame
            if code == 1:
                self._heard(payload.decode())
            elif code == 9:
                self._send(10, payload)

    def _next_frame(self) -> tuple[int, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        size, start = buffer[1] & 127, 2
        if size == 126:
            size, start = int.from_bytes(buffer[2:4]), 4
        elif size == 127:
            size, start = int.from_bytes(buffer[2:10]), 10
        if len(buffer) < max(start, start + size):
            return None
        self._buffer = buffer[start + size :]
        return buffer[0] & 15, buffer[start : start + size]

    def say(self, text: str) -> None:
        """Send *text*."""
        self._send(1, text.encode())

    def _send(self, code: int, payload: bytes) -> None:
        size = len(payload)
        head = bytes([128 | code])
        if size < 126:
            head += bytes([128 | size])
        else:
            head += bytes([128 | 126]) + struct.pack("!H", size)
        # A mask of zeros is a mask: nobody in between needs another.
        self._transport.write(head + b"\0\0\0\0" + payload)

    def close(self) -> None:
        """Hang up."""
        self._transport.close()


async def dial(port: int, path: str, token: str, heard: Callable[[str], None]) -> Peer:
    """Return an open link."""
    loop = asyncio.get_running_loop()
    _, peer = await loop.create_connection(
        lambda: Peer(f"{PREFIX}{path}", token, heard), "127.0.0.1", port
    )
    await peer.opened
    return peer


def hello(number: int, cores: int) -> tuple[str, str]:
    """Return what an agent says first: who it is, and that it runs nothing."""
    name = name_of(number)
    return (
        encode(
            Hello(
                protocol=PROTOCOL,
                agent_version="1",
                boot_id=f"boot-{name}",
                ledger_id=f"ledger-{name}",
                capabilities=capabilities(cores),
            )
        ),
        encode(Inventory(items=(), last=True)),
    )


class Service:
    """A real controller process with *machines* enrolled."""

    def __init__(self, folder: Path, machines: int) -> None:
        """Fill its store below *folder*; ``start`` starts it."""
        self.folder = folder
        self.port = a_free_port()
        places = Places(root=folder / "data")
        places.make()
        self.secret = secret_of(places.spawner_secret)
        (folder / "catalog.yaml").write_text(CATALOG)
        store = SqliteStore.open(places.controller / "store.sqlite")
        now = datetime.now(UTC)
        records = [
            MachineRecord(
                name=name_of(number),
                owner="owner",
                local=True,
                token_hash=hash_of(token_of(name_of(number))),
                enrolled_at=now,
                admin_allows=Relation.GUEST,
                owner_allows=Relation.GUEST,
            )
            for number in range(machines)
        ]
        store.commit(Change(machines={record.name: record for record in records}))
        store.close()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> psutil.Process:
        """Start it and return the process that serves."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "JUPYTERHUB_FLEET_DATA_DIR": str(self.folder / "data"),
            "JUPYTERHUB_FLEET_CATALOG": str(self.folder / "catalog.yaml"),
            "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{self.port}",
            "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
            "JUPYTERHUB_BASE_URL": "/",
            "JUPYTERHUB_API_URL": f"http://127.0.0.1:{a_free_port()}/hub/api",
            "JUPYTERHUB_API_TOKEN": "service-token",
            "JUPYTERHUB_CLIENT_ID": "service-fleet",
            "JUPYTERHUB_OAUTH_ACCESS_SCOPES": json.dumps(["access:services"]),
        }
        log = (self.folder / "service.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fleet_hub.service"],
            env=environment,
            cwd=self.folder,
            stdout=log,
            stderr=log,
        )
        return psutil.Process(self._process.pid)

    def serving(self) -> psutil.Process:
        """Return the process that holds the listening socket."""
        assert self._process is not None
        command = psutil.Process(self._process.pid)
        children = command.children()
        return children[0] if children else command

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)


async def until_listening(port: int) -> None:
    """Return once somebody listens on *port*."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)


def raise_open_files_limit() -> None:
    """Allow as many links as the system does."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
