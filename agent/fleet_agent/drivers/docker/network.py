"""Which network are notebooks in?  One of this agent's own, which it makes when needed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from fleet_agent.drivers.docker.engine import Client, Engine
from fleet_agent.drivers.docker.errors import InTheWayError, NotThereError
from fleet_agent.drivers.docker.records import AGENT


_BRIDGE = "com.docker.network.bridge.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network as containers see it."""

    name: str
    gateway: str
    """This machine's address there."""
    bridge: str = ""
    """This machine's interface to it."""


class Networks:
    """The network of one agent's notebooks; they cannot reach each other in it."""

    def __init__(self, engine: Engine) -> None:
        """Make nothing yet."""
        self._engine = engine
        self._lock = asyncio.Lock()

    async def find(self, agent: str) -> Network | None:
        """Return the network of *agent*; None: there is none.

        Raises:
            EngineError: the engine does not answer, so nothing is known.
        """
        with suppress(NotThereError):
            return await self._find(_name(agent))
        return None

    async def remove(self, agent: str) -> None:
        """Remove the network of *agent*, if there is one.

        Raises:
            EngineError: it is not known to be gone.
        """
        async with self._lock:
            with suppress(NotThereError):
                await self._engine.ask(
                    lambda client: client.remove_network(_name(agent))
                )

    async def ensure(self, agent: str) -> Network:
        """Return the network of *agent*, made if it is not there.

        Raises:
            EngineError: it cannot be made.
        """
        name = _name(agent)
        async with self._lock:
            with suppress(NotThereError):
                return await self._find(name)
            # An earlier agent that is ending may have made it meanwhile.
            with suppress(InTheWayError):
                await self._engine.ask(lambda client: _make(client, name, agent))
            return await self._find(name)

    async def _find(self, name: str) -> Network:
        answer = await self._engine.ask(lambda client: client.inspect_network(name))
        pools = (answer.get("IPAM") or {}).get("Config") or [{}]
        gateways = [pool.get("Gateway") for pool in pools if pool.get("Gateway")]
        return Network(
            name=name,
            # Docker's own word for a machine whose address it knows better.
            gateway=gateways[0] if gateways else "host-gateway",
            bridge=(answer.get("Options") or {}).get(_BRIDGE)
            or f"br-{answer['Id'][:12]}",
        )


def _name(agent: str) -> str:
    return f"fleet-{agent}"


def _make(client: Client, name: str, agent: str) -> None:
    client.create_network(
        name,
        driver="bridge",
        check_duplicate=True,
        labels={AGENT: agent},
        # Notebooks of different people must not find each other's servers.
        options={"com.docker.network.bridge.enable_icc": "false"},
    )
