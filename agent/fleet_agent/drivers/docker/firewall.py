"""What keeps containers out of this machine's private network?

One table of the kernel's packet filter, of this agent's own: it is there before the
first container is and goes with the containers' network.  It does not depend on the
engine, on its restarts or on this agent's life, and touches no rule of anybody else.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import structlog

from fleet_agent.drivers.common.threads import to_its_end
from fleet_agent.drivers.docker import packet_filter
from fleet_agent.drivers.docker.facts import EngineFacts
from fleet_agent.drivers.docker.network import Network
from fleet_agent.drivers.docker.planning import MACHINE, seen_from_inside
from fleet_agent.drivers.docker.reach import (
    Endpoint,
    Openings,
    Reach,
    hub_in,
    proxies_in,
    resolvers,
    rules,
)


RESOLVERS = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))
"""Where the engine reads whom containers ask for names."""
INTERFACES = Path("/sys/class/net")


_log = structlog.get_logger(__name__)


class Firewall:
    """The rules for one agent's containers."""

    def __init__(self, reach: Reach, given: Mapping[str, str]) -> None:
        """Let through what *reach* allows, and the proxies in *given*."""
        self._reach = reach
        self._given = given
        self._told: set[Endpoint] = set()
        self._wanted: tuple[str, Network] | None = None
        self._lock = asyncio.Lock()

    def problem(self, facts: EngineFacts) -> str | None:
        """Return why nothing can be kept from containers, as one sentence.

        None: it can, or the machine's owner wants nothing kept from them.
        """
        if self._reach.everything:
            return None
        cause = None
        if facts.desktop:
            cause = "its containers run in Docker Desktop's virtual machine"
        elif facts.rootless:
            cause = "its container engine does not run as root"
        else:
            cause = packet_filter.what_is_missing()
        if cause is None:
            return None
        return (
            "This machine cannot keep notebooks in containers out of its private "
            f"network: {cause}. Its owner can allow them in (docker_networks)."
        )

    async def ensure(
        self,
        agent: str,
        network: Network,
        environments: Iterable[Mapping[str, str]],
    ) -> None:
        """Put the rules for *network* in place; may be asked again at any time.

        The Hub of all *environments* is let through, beside those of earlier calls.

        Raises:
            PacketFilterError: they are not in place.
        """
        if self._reach.everything:
            return
        async with self._lock:
            for environment in environments:
                self._told |= hub_in(
                    {name: seen_from_inside(url) for name, url in environment.items()}
                )
            self._wanted = agent, network
            await self._apply(agent, network)

    async def look_after(self) -> bool:
        """Put rules that somebody removed in place again; return whether it was so."""
        async with self._lock:
            if self._wanted is None:
                return False
            agent, network = self._wanted
            if await to_its_end(lambda: packet_filter.is_there(_table(agent))):
                return False
            _log.warning("the containers' packet filter was removed from outside")
            await self._apply(agent, network)
            return True

    async def lift(self, agent: str) -> None:
        """Remove the rules: there is no network for them any more."""
        async with self._lock:
            self._wanted = None
            self._told.clear()
            if packet_filter.what_is_missing() is None:
                await to_its_end(lambda: packet_filter.remove(_table(agent)))

    async def _apply(self, agent: str, network: Network) -> None:
        told = self._told | proxies_in(self._given)
        await to_its_end(lambda: self._put(agent, network, told))

    def _put(self, agent: str, network: Network, told: set[Endpoint]) -> None:
        if not (INTERFACES / network.bridge).exists():
            # An agent in a container of its own, or an engine behind a tunnel.
            raise packet_filter.PacketFilterError(
                f"{network.bridge} is no interface of this machine as its agent sees it"
            )
        openings = Openings(
            endpoints=frozenset(_found(told, network)),
            resolvers=resolvers(_texts(RESOLVERS)),
            networks=self._reach.networks,
        )
        packet_filter.put(rules(_table(agent), network.bridge, openings))


def _table(agent: str) -> str:
    return f"fleet_{agent}"


def _found(told: Iterable[Endpoint], network: Network) -> Iterable[Endpoint]:
    """Yield the addresses of the servers that were *told*, as containers see them."""
    for endpoint in told:
        host = network.gateway if endpoint.host == MACHINE else endpoint.host
        # A name that is not known now may be at the next start.
        with suppress(OSError):
            for answer in socket.getaddrinfo(
                host, endpoint.port, type=socket.SOCK_STREAM
            ):
                yield Endpoint(str(answer[4][0]), endpoint.port)


def _texts(paths: Iterable[Path]) -> Iterable[str]:
    for path in paths:
        with suppress(OSError):
            yield path.read_text(errors="replace")
