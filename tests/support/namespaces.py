"""Machines of a network: each in a network namespace, the test's own is the Hub's."""

from __future__ import annotations

import ipaddress
import json
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from string import ascii_lowercase


_LANS = count()


def ip(*arguments: str) -> str:
    """Return what the command ip says; it must do what it is told."""
    done = subprocess.run(
        ["ip", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def why_none() -> str | None:
    """Return why this system makes no network namespaces; None: it does."""
    name = f"try{os.getpid()}"
    try:
        ip("netns", "add", name)
        ip("link", "add", name, "type", "veth", "peer", "name", f"{name}p")
    except FileNotFoundError:
        return "the command ip is not installed"
    except subprocess.CalledProcessError as error:
        return f"network namespaces cannot be made here: {error.stderr.strip()}"
    finally:
        subprocess.run(["ip", "link", "del", name], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return None


@dataclass
class Lan:
    """One network with the Hub at its first address."""

    prefix: str
    bridge: str
    names: list[str] = field(default_factory=list)

    @property
    def network(self) -> str:
        """The network, as an admin declares it."""
        return f"{self.prefix}.0/24"

    @property
    def hub(self) -> str:
        """The Hub's address."""
        return f"{self.prefix}.1"

    def address(self, name: str) -> str:
        """Return the address of machine *name*."""
        return f"{self.prefix}.{self.names.index(name) + 10}"

    def add(self, name: str) -> list[str]:
        """Add a machine; return the words that run a command on it."""
        self.names.append(name)
        space, outer = self._space(name), self._outer(name)
        ip("netns", "add", space)
        ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space)
        ip("link", "set", outer, "master", self.bridge, "up")
        inside = ("-n", space)
        ip(*inside, "link", "set", "lo", "up")
        ip(*inside, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
        ip(*inside, "link", "set", "eth0", "up")
        return self.inside(name)

    def inside(self, name: str) -> list[str]:
        """Return the words that run a command on machine *name*."""
        return ["ip", "netns", "exec", self._space(name)]

    def cut_off(self, name: str) -> None:
        """Pull the plug of machine *name*."""
        ip("link", "set", self._outer(name), "down")

    def plug_in(self, name: str) -> None:
        """Put it back."""
        ip("link", "set", self._outer(name), "up")

    def _space(self, name: str) -> str:
        return f"{self.bridge}-{name}"

    def _outer(self, name: str) -> str:
        return f"{self.bridge}{self.names.index(name)}"

    def close(self) -> None:
        """Take everything away."""
        for name in self.names:
            ip("netns", "del", self._space(name))
        ip("link", "del", self.bridge)


@contextmanager
def a_lan() -> Iterator[Lan]:
    """Make a network that nothing else on this computer uses."""
    # A namespace lives on as long as a process in it, and so do its machines' names.
    bridge = f"fl{os.getpid() % 1_000_000}{ascii_lowercase[next(_LANS) % 26]}"
    lan = Lan(prefix=free_prefix(), bridge=bridge)
    ip("link", "add", bridge, "type", "bridge")
    try:
        ip("addr", "add", f"{lan.hub}/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        yield lan
    finally:
        lan.close()


def free_prefix() -> str:
    """Return the first three parts of a network that this computer does not have."""
    taken = [
        ipaddress.ip_network(f"{entry['local']}/{entry['prefixlen']}", strict=False)
        for link in json.loads(ip("-j", "addr"))
        for entry in link.get("addr_info", ())
        if entry["family"] == "inet"
    ]
    while True:
        prefix = f"10.{random.randrange(200, 250)}.{random.randrange(256)}"
        wanted = ipaddress.ip_network(f"{prefix}.0/24")
        if not any(wanted.overlaps(network) for network in taken):
            return prefix
