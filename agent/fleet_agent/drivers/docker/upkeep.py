"""What of the engine is this agent's beside containers, and for how long?

The network of its notebooks and the packet filter around it are there before the first
container, are looked after while there are any, and go when there are none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import structlog

from fleet_agent.drivers.docker.containers import Containers
from fleet_agent.drivers.docker.errors import EngineError
from fleet_agent.drivers.docker.firewall import Firewall
from fleet_agent.drivers.docker.network import Network, Networks
from fleet_agent.drivers.docker.packet_filter import PacketFilterError
from fleet_agent.drivers.docker.tidying import Tidying


LOOK_SECONDS = 30.0
"""Between two looks whether the packet filter is still there."""
FIRST_TIDY_SECONDS = 600.0
TIDY_SECONDS = 3600.0

_log = structlog.get_logger(__name__)


class Upkeep:
    """Keeps one agent's part of one engine in order."""

    def __init__(
        self,
        *,
        containers: Containers,
        networks: Networks,
        firewall: Firewall,
        tidying: Tidying,
    ) -> None:
        """Do nothing yet."""
        self._containers = containers
        self._networks = networks
        self._firewall = firewall
        self._tidying = tidying
        self._agent: str | None = None
        self._starting = 0
        self._is_taken_up = False
        self._lock = asyncio.Lock()
        self._loop: asyncio.Task[None] | None = None

    async def open(self, agent: str) -> None:
        """Take up what an earlier agent left running, and go on until closed."""
        self._agent = agent
        try:
            await self.take_up(agent)
        except (EngineError, PacketFilterError) as error:
            _log.warning("running notebooks are not looked after", error=str(error))
        if self._loop is None:
            self._loop = asyncio.create_task(self._go_on(agent))

    async def take_up(self, agent: str) -> None:
        """See to it that what runs already is kept in; once for this process.

        Raises:
            EngineError: the engine does not answer.
            PacketFilterError: the packet filter cannot be set.
        """
        async with self._lock:
            network = await self._networks.find(agent)
            told = await self._containers.environments(agent)
            if network is not None and told:
                await self._firewall.ensure(agent, network, told)
            self._is_taken_up = True

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Tell that a start is under way: its network is needed."""
        self._starting += 1
        try:
            yield
        finally:
            self._starting -= 1

    async def network(self, agent: str, told: Mapping[str, str]) -> Network:
        """Return the network for a container that is *told* these variables.

        Raises:
            EngineError: it cannot be made.
            PacketFilterError: nothing can be kept from the container.
        """
        self._agent = agent
        if not self._is_taken_up:
            # Other notebooks may have been told of another Hub.
            await self.take_up(agent)
        async with self._lock:
            network = await self._networks.ensure(agent)
            await self._firewall.ensure(agent, network, [told])
        return network

    async def tidy(self, agent: str, *, now: float) -> None:
        """Remove what nobody uses.

        Raises:
            EngineError: the engine does not answer; the rest waits for next time.
            PacketFilterError: the packet filter cannot be changed.
        """
        await self._tidying.tidy(agent, now=now)
        await self._give_up_network(agent)

    async def close(self) -> None:
        """End; of what no container needs nothing stays."""
        if self._loop is not None:
            self._loop.cancel()
            with suppress(asyncio.CancelledError):
                await self._loop
            self._loop = None
        if self._agent is None:
            return
        # The next agent finds it by its name.
        with suppress(EngineError, PacketFilterError):
            await self._give_up_network(self._agent)

    async def _give_up_network(self, agent: str) -> None:
        async with self._lock:
            if self._starting or await self._containers.any(agent):
                return
            await self._networks.remove(agent)
            await self._firewall.lift(agent)

    async def _go_on(self, agent: str) -> None:
        next_tidy = time.monotonic() + FIRST_TIDY_SECONDS
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._firewall.look_after()
                if time.monotonic() >= next_tidy:
                    next_tidy = time.monotonic() + TIDY_SECONDS
                    await self.tidy(agent, now=time.time())
            except (EngineError, PacketFilterError) as error:
                _log.warning("the engine is not kept in order", error=str(error))
