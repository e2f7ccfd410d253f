"""An agent that cannot write: it says so, goes on, and loses nothing.

The limit on file sizes of the agent's own process stands for a full disk: the kernel
refuses every write that would make a file longer.
"""

from __future__ import annotations

import resource

import held_agent
import pytest
from agent_process import AgentProcess
from agent_support import a_spec
from controller_peer import ControllerPeer
from patience import until_so

from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Reason


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

ONE = "w1-1"


def _fill_disk(agent: AgentProcess) -> None:
    resource.prlimit(agent.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def _make_room(agent: AgentProcess) -> None:
    unlimited = resource.RLIM_INFINITY
    resource.prlimit(agent.pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))


async def test_a_launch_on_a_full_disk_is_refused_with_the_reason(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Nothing is taken on that could not be remembered; with room it works again."""
    agent.start()
    await peer.greeted(1)
    _fill_disk(agent)
    peer.launch(ONE, 1, a_spec())
    rejected = await peer.report(ONE, AgentEvent.REJECTED)
    assert rejected.explanation is not None
    assert rejected.explanation.reason is Reason.DISK_FULL
    assert agent.workloads() == []
    _make_room(agent)
    peer.launch("w2-1", 2, a_spec())
    await peer.report("w2-1", AgentEvent.SERVING)


async def test_an_end_on_a_full_disk_is_reported_once_there_is_room(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Until the end is durable it is not told, and it is not forgotten either."""
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec())
    await peer.report(ONE, AgentEvent.SERVING)
    _fill_disk(agent)
    peer.stop(ONE, 1)
    await until_so(lambda: not agent.workloads(), "the notebook has ended")
    assert not [
        report for report in peer.reports(ONE) if report.event is AgentEvent.ENDED
    ]
    _make_room(agent)
    await peer.report(ONE, AgentEvent.ENDED)


async def test_a_start_on_a_disk_that_becomes_full_fails_and_is_undone(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """A handle that cannot be made durable ends the start: nothing may be lost."""
    go_on = agent.folder.parent / "go-on"
    agent.program = (held_agent.__file__, str(go_on))
    agent.settings["simulation"] = {"pause_at": "preparing"}
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec())
    await peer.report(ONE, AgentEvent.ACCEPTED)
    _fill_disk(agent)
    go_on.touch()
    # The agent meets the full disk when it records that the runtime is prepared.
    heartbeats = len(peer.heard)
    await peer.until(lambda: len(peer.heard) > heartbeats + 15)
    assert agent.workloads() == []
    _make_room(agent)
    await peer.report(ONE, AgentEvent.SERVING)
    assert len(agent.workloads()) == 1
