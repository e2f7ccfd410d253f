"""What a killed, ended or cut-off agent leaves behind, and what the next one does."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any
from urllib.request import urlopen

import pytest
from agent_process import AgentProcess
from agent_support import a_spec
from controller_peer import ControllerPeer
from patience import PATIENCE, until_so

from fleet_agent.ledger import Ledger
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

ONE = "w1-1"


def _answers(url: str | None) -> bool:
    assert url is not None
    with urlopen(url, timeout=PATIENCE) as answer:
        return bool(answer.status == 200)


async def _serve(peer: ControllerPeer, agent: AgentProcess, **changes: Any) -> str:
    """Start an agent and a workload on it, and return the workload's address."""
    agent.start()
    await peer.greeted(len(peer.inventories) + 1)
    peer.launch(ONE, 1, a_spec(**changes))
    url = (await peer.report(ONE, AgentEvent.SERVING)).url
    assert url is not None
    return url


async def test_a_notebook_outlives_a_killed_agent_and_is_found_again(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """The next agent reports it as serving, still waits on it, and can end it."""
    url = await _serve(peer, agent)
    (workload,) = agent.workloads()
    await agent.kill()
    assert await asyncio.to_thread(_answers, url)
    agent.start()
    hello = await peer.greeted(2)
    assert hello.ledger_id == peer.hellos[0].ledger_id
    assert hello.inventory_size == 1
    assert hello.highest_epoch == 1
    (item,) = peer.inventories[1]
    assert (item.allocation, item.epoch) == (ONE, 1)
    assert item.event is AgentEvent.SERVING
    assert item.url == url
    assert agent.workloads() == [workload]
    # A repeated launch does not start a second one.
    peer.launch(ONE, 1, a_spec())
    peer.stop(ONE, 1)
    await peer.report(ONE, AgentEvent.ENDED)
    assert agent.workloads() == []


async def test_an_end_without_an_agent_is_reported_by_the_next_one(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """A server that died meanwhile is not taken for running."""
    agent.settings["simulation"] = {"fault": "server_crashes", "run_seconds": 2}
    await _serve(peer, agent)
    await agent.kill()
    await _until_gone(agent)
    agent.start()
    failed = await peer.report(ONE, AgentEvent.FAILED)
    assert failed.explanation is not None
    assert failed.explanation.reason is Reason.SERVER_EXITED
    assert failed.explanation.detail == "exit status 3"


async def test_a_found_notebook_is_waited_for(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """The next agent notices the end of a server that it did not start."""
    await _serve(peer, agent)
    await agent.kill()
    agent.start()
    await peer.greeted(2)
    _end_by_itself(agent)
    await peer.report(ONE, AgentEvent.ENDED)
    assert agent.workloads() == []


async def test_a_time_limit_goes_on_while_there_is_no_agent(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """The limit counts from when the server was ready, whoever watches."""
    await _serve(peer, agent, limit_seconds=3)
    await agent.kill()
    ledger = Ledger(agent.folder / "ledger.sqlite")
    [entry] = ledger.entries()
    ledger.close()
    assert entry.ends_at is not None
    agent.start()
    ended = await peer.report(ONE, AgentEvent.ENDED)
    assert ended.explanation is not None
    assert ended.explanation.reason is Reason.TIME_LIMIT
    # The two clocks that are asked differ by less.
    assert ended.at.timestamp() > entry.ends_at - 0.5
    assert agent.workloads() == []


STEPS = ["preparing", "folder_made", "spawned", "named", "answering"]


@pytest.mark.parametrize("step", STEPS)
async def test_a_launch_goes_on_after_a_kill_at_any_step(
    peer: ControllerPeer, agent: AgentProcess, step: str
) -> None:
    """The launch is sent again, and exactly one server comes of it."""
    await _kill_at(step, peer, agent)
    agent.start()
    await peer.greeted(2)
    peer.launch(ONE, 1, a_spec())
    serving = await peer.report(ONE, AgentEvent.SERVING)
    assert await asyncio.to_thread(_answers, serving.url)
    assert len(agent.workloads()) == 1
    peer.stop(ONE, 1)
    await peer.report(ONE, AgentEvent.ENDED)
    assert agent.workloads() == []
    seqs = [report.seq for report in peer.reports(ONE)]
    assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.parametrize("step", STEPS)
async def test_a_launch_that_nobody_wants_any_more_is_cleaned_up_after_a_kill(
    peer: ControllerPeer, agent: AgentProcess, step: str
) -> None:
    """Whatever the killed agent had begun is undone before the end is reported."""
    await _kill_at(step, peer, agent)
    agent.start()
    await peer.greeted(2)
    by_user = Explanation(reason=Reason.STOPPED_BY_USER)
    peer.stop(ONE, 1, explanation=by_user)
    ended = await peer.report(ONE, AgentEvent.ENDED)
    assert ended.explanation == by_user
    assert agent.workloads() == []
    assert not list((agent.folder / "simulation").glob("*"))


async def test_a_server_whose_address_was_durable_needs_no_second_launch(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Killed between the last handle and its report, the server is simply ready."""
    await _kill_at("address_told", peer, agent)
    (workload,) = agent.workloads()
    agent.start()
    serving = await peer.report(ONE, AgentEvent.SERVING)
    assert await asyncio.to_thread(_answers, serving.url)
    assert agent.workloads() == [workload]


async def test_a_stop_goes_on_after_a_kill(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """The decision to end is durable before anything is done about it."""
    agent.settings["simulation"] = {"fault": "server_ignores_stop"}
    await _serve(peer, agent, stop_seconds=3600)
    by_admin = Explanation(reason=Reason.STOPPED_BY_ADMIN)
    peer.stop(ONE, 1, explanation=by_admin)
    await peer.report(ONE, AgentEvent.STOPPING)
    await agent.kill()
    assert len(agent.workloads()) == 1
    agent.start()
    await peer.greeted(2)
    peer.stop(ONE, 1, now=True)
    ended = await peer.report(ONE, AgentEvent.ENDED)
    assert ended.explanation == by_admin
    assert agent.workloads() == []


async def test_losing_the_controller_ends_nothing_and_loses_no_report(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """What happened meanwhile is told in order, to whoever comes back."""
    url = await _serve(peer, agent)
    await peer.close()
    assert await asyncio.to_thread(_answers, url)
    _end_by_itself(agent)
    await _until_gone(agent)
    peer.open()
    await peer.greeted(2)
    ended = await peer.report(ONE, AgentEvent.ENDED)
    (item,) = peer.inventories[1]
    assert item.event is AgentEvent.ENDED
    assert item.seq == ended.seq


async def test_a_class_that_asks_for_it_ends_when_it_is_cut_off_too_long(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """By the machine itself, told at the return; what did not ask for it runs on."""
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec(lease_seconds=1))
    peer.launch("w2-1", 2, a_spec(notebook="2-1"))
    for allocation in (ONE, "w2-1"):
        await peer.report(allocation, AgentEvent.SERVING)
    before = agent.workloads()
    await peer.close()
    await until_so(lambda: len(agent.workloads()) < 2, "one of them has ended")
    [left] = agent.workloads()
    assert left in before
    peer.open()
    ended = await peer.report(ONE, AgentEvent.ENDED)
    assert ended.explanation is not None
    assert ended.explanation.reason is Reason.CUT_OFF
    events = {item.allocation: item.event for item in peer.inventories[1]}
    assert events["w2-1"] is AgentEvent.SERVING


async def test_reports_are_sent_again_until_they_are_acknowledged(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """A controller that has recorded nothing hears everything again, in order."""
    peer.acknowledges = False
    await _serve(peer, agent)
    first = [report.event for report in peer.reports(ONE)]
    peer.heard.clear()
    await peer.close()
    peer.open()
    await peer.greeted(2)
    await peer.report(ONE, AgentEvent.SERVING)
    assert [report.event for report in peer.reports(ONE)] == first
    seqs = [report.seq for report in peer.reports(ONE)]
    assert seqs == sorted(seqs)
    await agent.kill()
    peer.heard.clear()
    peer.acknowledges = True
    agent.start()
    await peer.report(ONE, AgentEvent.SERVING)
    assert [report.event for report in peer.reports(ONE)] == first


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_agent_that_is_told_to_end_leaves_its_notebooks(
    peer: ControllerPeer, agent: AgentProcess, number: signal.Signals
) -> None:
    """It ends at once and well, and the server goes on."""
    url = await _serve(peer, agent)
    assert await agent.end(number) == 0
    assert await asyncio.to_thread(_answers, url)
    assert len(agent.workloads()) == 1


async def test_an_agent_that_ends_undoes_what_was_half_started(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """What could not be found again is not left; its launch may come again."""
    agent.settings["simulation"] = {"pause_at": "named"}
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec())
    await peer.step(ONE, "paused_named")
    assert await agent.end() == 0
    assert agent.workloads() == []
    agent.settings["simulation"] = {}
    agent.start()
    await peer.greeted(2)
    peer.launch(ONE, 1, a_spec())
    await peer.report(ONE, AgentEvent.SERVING)


async def test_an_agent_may_take_its_notebooks_along(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """With ``--stop-workloads-on-exit`` nothing is left, and the end is reported."""
    agent.start("--stop-workloads-on-exit")
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec())
    peer.launch("w2-1", 2, a_spec())
    await peer.report(ONE, AgentEvent.SERVING)
    await peer.report("w2-1", AgentEvent.SERVING)
    assert await agent.end() == 0
    assert agent.workloads() == []
    for allocation in (ONE, "w2-1"):
        ended = await peer.report(allocation, AgentEvent.ENDED)
        assert ended.explanation is not None
        assert ended.explanation.reason is Reason.STOPPED_BY_ADMIN


async def _kill_at(step: str, peer: ControllerPeer, agent: AgentProcess) -> None:
    """Kill the agent at *step* of a launch; the next one does not stop there."""
    agent.settings["simulation"] = {"pause_at": step}
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec())
    await peer.step(ONE, f"paused_{step}")
    await agent.kill()
    agent.settings["simulation"] = {}


def _end_by_itself(agent: AgentProcess) -> None:
    """Let the one server of *agent* end well, though nobody has asked the agent."""
    (workload,) = agent.workloads()
    os.kill(workload, signal.SIGTERM)


async def _until_gone(agent: AgentProcess) -> None:
    """Return once no simulated notebook of *agent* runs any more."""
    await until_so(lambda: not agent.workloads(), "no notebook runs")
