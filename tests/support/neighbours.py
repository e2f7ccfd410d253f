"""What lies around a machine: other computers at addresses of every kind.

One network namespace plays them all; the machine has a route to each of its addresses.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError

from namespaces import free_prefix, ip


METADATA = "169.254.169.254"
"""Where clouds tell a machine its secrets."""

_SERVER = """
import asyncio, sys

async def hello(reader, writer):
    writer.write(b"hello")
    writer.close()

async def main():
    for port in sys.argv[1:]:
        await asyncio.start_server(hello, ("0.0.0.0", "::"), int(port))
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@dataclass(frozen=True)
class Neighbours:
    """Addresses that answer at some ports with hello; none is the machine's own."""

    machine: str
    """The machine's own address on their network."""
    private: str
    public: str
    private6: str
    public6: str


@contextmanager
def neighbours(ports: Sequence[int]) -> Iterator[Neighbours]:
    """Have them answer at *ports* until the block ends; what was set is set back."""
    prefix, mark = free_prefix(), random.randrange(1, 255)
    space = outer = f"nb{os.getpid() % 1_000_000}"
    them = Neighbours(
        machine=f"{prefix}.1",
        private=f"{prefix}.2",
        # Of documentation's networks, which no computer has.
        public=f"198.51.100.{mark}",
        private6=f"fd51:{mark:x}::2",
        public6=f"2001:db8:{mark:x}::2",
    )
    ip("netns", "add", space)
    try:
        with _as_it_was(Path("/proc/sys/net/ipv6/conf/all/forwarding")):
            _connect(space, outer, them)
            with _answering(space, ports):
                yield them
    finally:
        # At once: of itself it goes some time after its other end.
        with suppress(CalledProcessError):
            ip("link", "del", outer)
        ip("netns", "del", space)


def _connect(space: str, outer: str, them: Neighbours) -> None:
    inside = ("-n", space)
    gateway6 = f"{them.private6[:-1]}1"
    ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space)
    ip("addr", "add", f"{them.machine}/32", "dev", outer)
    ip("addr", "add", f"{gateway6}/128", "dev", outer, "nodad")
    ip("link", "set", outer, "up")
    ip(*inside, "link", "set", "lo", "up")
    ip(*inside, "link", "set", "eth0", "up")
    for address in (them.private, METADATA, them.public):
        ip(*inside, "addr", "add", f"{address}/32", "dev", "eth0")
        ip("route", "add", f"{address}/32", "dev", outer, "src", them.machine)
    for address in (them.private6, them.public6):
        ip(*inside, "addr", "add", f"{address}/128", "dev", "eth0", "nodad")
        ip("route", "add", f"{address}/128", "dev", outer)
    ip(*inside, "route", "add", "default", "via", them.machine, "dev", "eth0", "onlink")
    ip(*inside, "route", "add", "default", "via", gateway6, "dev", "eth0", "onlink")


@contextmanager
def _answering(space: str, ports: Sequence[int]) -> Iterator[None]:
    program = [sys.executable, "-I", "-c", _SERVER, *map(str, ports)]
    server = subprocess.Popen(
        ["ip", "netns", "exec", space, *program], stdout=subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield
    finally:
        server.kill()
        server.communicate()


@contextmanager
def _as_it_was(setting: Path) -> Iterator[None]:
    before = setting.read_text()
    try:
        yield
    finally:
        setting.write_text(before)
