"""A controller's peer and real agents for it; nothing is left when a test ends."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from agent_process import AgentProcess
from controller_peer import ControllerPeer


@pytest_asyncio.fixture
async def peer() -> AsyncIterator[ControllerPeer]:
    """Return a listening controller's peer."""
    peer = ControllerPeer()
    peer.open()
    yield peer
    await peer.close()


@pytest.fixture
def new_agent(
    tmp_path: Path, peer: ControllerPeer
) -> Iterator[Callable[..., AgentProcess]]:
    """Return a maker of agents that are not started yet."""
    made: list[AgentProcess] = []

    def make(name: str = "agent", **details: str) -> AgentProcess:
        agent = AgentProcess(tmp_path / name, controller=peer.url, **details)
        made.append(agent)
        return agent

    yield make
    for agent in made:
        agent.clean_up()
        # Shown only when the test has failed.
        sys.stdout.write(agent.told())


@pytest.fixture
def agent(new_agent: Callable[..., AgentProcess]) -> AgentProcess:
    """Return an agent that is not started yet."""
    return new_agent()
