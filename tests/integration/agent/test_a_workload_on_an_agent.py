"""From launch to end on a real agent, with a real process as the workload."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import held_agent
import pytest
from agent_process import AgentProcess
from agent_support import SECRET, a_runtime, a_spec
from controller_peer import ControllerPeer
from patience import PATIENCE

from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import DriverName, Resources


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

ONE = "w1-1"


def _fetch(url: str) -> str:
    with urlopen(url, timeout=PATIENCE) as answer:
        return str(answer.read().decode())


def _events(peer: ControllerPeer, allocation: str = ONE) -> list[str]:
    """Return what was reported, progress aside."""
    return [
        report.event.value
        for report in peer.reports(allocation)
        if report.event is not AgentEvent.PROGRESS
    ]


async def test_a_launch_ends_in_a_server_that_answers_until_it_is_stopped(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Accepted, prepared, serving at its address, stopping, ended: in this order."""
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec())
    serving = await peer.report(ONE, AgentEvent.SERVING)
    assert serving.url is not None
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/user/olivia/", serving.url)
    page = await asyncio.to_thread(_fetch, serving.url)
    assert "jupyter (small)" in page
    assert len(agent.workloads()) == 1
    by_user = Explanation(reason=Reason.STOPPED_BY_USER)
    peer.stop(ONE, 1, explanation=by_user)
    ended = await peer.report(ONE, AgentEvent.ENDED)
    assert ended.explanation == by_user
    assert agent.workloads() == []
    assert _events(peer) == ["accepted", "prepared", "serving", "stopping", "ended"]
    seqs = [report.seq for report in peer.reports(ONE)]
    assert seqs == list(range(1, len(seqs) + 1))


async def test_a_repeated_message_changes_nothing(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Launch, stop and forget may come twice: one server, one end, no return."""
    agent.start()
    await peer.greeted(1)
    for _ in range(3):
        peer.launch(ONE, 1, a_spec())
    await peer.report(ONE, AgentEvent.SERVING)
    peer.launch(ONE, 1, a_spec())
    assert len(agent.workloads()) == 1
    peer.stop(ONE, 1)
    peer.stop(ONE, 1)
    await peer.report(ONE, AgentEvent.ENDED)
    peer.launch(ONE, 1, a_spec())
    peer.forget(ONE, 1)
    peer.forget(ONE, 1)
    peer.launch(ONE, 1, a_spec())
    rejected = await peer.report(ONE, AgentEvent.REJECTED)
    assert rejected.explanation is not None
    assert rejected.explanation.reason is Reason.EPOCH_STALE
    assert agent.workloads() == []
    assert _events(peer)[:5] == ["accepted", "prepared", "serving", "stopping", "ended"]


async def test_an_older_epoch_is_refused_and_disturbs_nothing(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """What a newer launch has overtaken can neither start nor stop anything."""
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 5, a_spec())
    await peer.report(ONE, AgentEvent.SERVING, epoch=5)
    peer.launch(ONE, 4, a_spec())
    rejected = await peer.report(ONE, AgentEvent.REJECTED, epoch=4)
    assert rejected.explanation is not None
    assert rejected.explanation.reason is Reason.EPOCH_STALE
    peer.stop(ONE, 3)
    await peer.report(ONE, AgentEvent.ENDED, epoch=3)
    assert len(agent.workloads()) == 1


async def test_a_newer_epoch_ends_the_older_one_first(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Two launches of one allocation never run at once."""
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec())
    await peer.report(ONE, AgentEvent.SERVING, epoch=1)
    peer.launch(ONE, 2, a_spec())
    rejected = await peer.report(ONE, AgentEvent.REJECTED, epoch=2)
    assert rejected.explanation is not None
    assert rejected.explanation.reason is Reason.AGENT_REJECTED
    await peer.report(ONE, AgentEvent.ENDED, epoch=1)
    assert agent.workloads() == []
    peer.launch(ONE, 3, a_spec())
    await peer.report(ONE, AgentEvent.SERVING, epoch=3)


async def test_a_stop_that_overtakes_its_launch_prevents_it(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """The end of what never came is confirmed, and it cannot come any more."""
    agent.start()
    await peer.greeted(1)
    peer.stop(ONE, 1)
    await peer.report(ONE, AgentEvent.ENDED)
    peer.launch(ONE, 1, a_spec())
    peer.launch("w2-1", 2, a_spec())
    await peer.report("w2-1", AgentEvent.SERVING)
    assert len(agent.workloads()) == 1
    assert _events(peer) == ["ended"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"runtime": a_runtime(driver=DriverName.DOCKER)}, Reason.DRIVER_UNAVAILABLE),
        ({"resources": Resources(cpu_milli=10**9)}, Reason.CPU_BUSY),
        ({"resources": Resources(memory_bytes=2**60)}, Reason.MEMORY_BUSY),
        ({"resources": Resources(devices=("GPU-1",))}, Reason.SELECTION_MISMATCH),
        ({"kind": "endpoint"}, Reason.ENDPOINTS_NOT_BUILT),
    ],
)
async def test_the_machine_refuses_what_it_must_not_run(
    peer: ControllerPeer, agent: AgentProcess, changes: dict[str, Any], reason: Reason
) -> None:
    """The agent looks itself, whatever the controller decided."""
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec(**changes))
    rejected = await peer.report(ONE, AgentEvent.REJECTED)
    assert rejected.explanation is not None
    assert rejected.explanation.reason is reason
    assert agent.workloads() == []


@pytest.mark.parametrize(
    ("simulation", "limits", "over"),
    [
        ({"fault": "prepare_fails"}, {}, ("failed", Reason.PREPARE_FAILED)),
        (
            {"fault": "prepare_hangs"},
            {"prepare_seconds": 0.2},
            ("failed", Reason.PREPARE_TIMEOUT),
        ),
        ({"fault": "start_fails"}, {}, ("failed", Reason.START_FAILED)),
        (
            {"fault": "start_hangs"},
            {"start_seconds": 0.5},
            ("failed", Reason.START_TIMEOUT),
        ),
        ({}, {"limit_seconds": 0.3}, ("ended", Reason.TIME_LIMIT)),
    ],
)
async def test_an_end_that_nobody_asked_for_is_explained(
    peer: ControllerPeer,
    agent: AgentProcess,
    simulation: dict[str, Any],
    limits: dict[str, float],
    over: tuple[str, Reason | None],
) -> None:
    """Each deadline and each fault has its own code, and nothing of it is left."""
    agent.settings["simulation"] = simulation
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec(**limits))
    event, reason = over
    report = await peer.report(ONE, AgentEvent(event))
    assert (report.explanation and report.explanation.reason) == reason
    assert agent.workloads() == []
    assert not list((agent.folder / "simulation").glob("*"))
    # The agent itself goes on.
    agent_still_there = agent.pid
    peer.stop("w9-1", 9)
    await peer.report("w9-1", AgentEvent.ENDED)
    assert agent.pid == agent_still_there


@pytest.mark.parametrize(
    ("number", "event", "reason"),
    [
        (signal.SIGTERM, AgentEvent.ENDED, None),
        (signal.SIGKILL, AgentEvent.FAILED, Reason.SERVER_EXITED),
    ],
)
async def test_a_server_that_ends_by_itself_is_told_as_that(
    peer: ControllerPeer,
    agent: AgentProcess,
    number: signal.Signals,
    event: AgentEvent,
    reason: Reason | None,
) -> None:
    """Well, or by a crash; and nothing of it is left."""
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec())
    await peer.report(ONE, AgentEvent.SERVING)
    (workload,) = agent.workloads()
    os.kill(workload, number)
    report = await peer.report(ONE, event)
    assert (report.explanation and report.explanation.reason) == reason
    assert agent.workloads() == []
    assert not list((agent.folder / "simulation").glob("*"))


async def test_a_stop_that_fails_is_tried_until_it_is_true(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """The end is reported when nothing runs any more, not when a driver gave up."""
    agent.settings["simulation"] = {"fault": "stop_fails_once"}
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec())
    await peer.report(ONE, AgentEvent.SERVING)
    peer.stop(ONE, 1)
    await peer.report(ONE, AgentEvent.ENDED)
    assert agent.workloads() == []
    assert "a workload could not be stopped" in agent.told()


async def test_stop_now_does_not_wait_for_a_deaf_server(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """A second, urgent stop ends the grace of the first."""
    agent.settings["simulation"] = {"fault": "server_ignores_stop"}
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec(stop_seconds=3600))
    await peer.report(ONE, AgentEvent.SERVING)
    peer.stop(ONE, 1)
    await peer.report(ONE, AgentEvent.STOPPING)
    assert len(agent.workloads()) == 1
    peer.stop(ONE, 1, now=True)
    await peer.report(ONE, AgentEvent.ENDED)
    assert agent.workloads() == []


@pytest.mark.parametrize("step", ["preparing", "spawned", "named", "answering"])
async def test_a_stop_during_the_start_leaves_nothing(
    peer: ControllerPeer, agent: AgentProcess, step: str
) -> None:
    """Cancelled at any step, everything is undone before the end is reported."""
    agent.settings["simulation"] = {"pause_at": step}
    agent.start()
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec())
    await peer.step(ONE, f"paused_{step}")
    peer.stop(ONE, 1)
    await peer.report(ONE, AgentEvent.ENDED)
    assert agent.workloads() == []
    assert not list((agent.folder / "simulation").glob("*"))


@pytest.mark.parametrize(
    ("step", "when"),
    [("preparing", AgentEvent.ACCEPTED), ("named", AgentEvent.PREPARED)],
)
async def test_a_start_that_the_hub_began_anew_gets_the_new_environment(
    peer: ControllerPeer, agent: AgentProcess, step: str, when: AgentEvent
) -> None:
    """One server comes of both launches, and it is not the one with the void token."""
    go_on = agent.folder.parent / "go-on"
    agent.program = (held_agent.__file__, str(go_on))
    agent.settings["simulation"] = {"pause_at": step}
    agent.start()
    await peer.greeted(1)
    spec = a_spec()
    peer.launch(ONE, 1, spec)
    await peer.report(ONE, when)
    anew = spec.environment | {"JUPYTERHUB_SERVICE_PREFIX": "/user/olivia/anew/"}
    peer.launch(ONE, 1, spec.model_copy(update={"environment": anew}))
    # Messages are taken in their order: with this answer the launch was taken.
    peer.stop("w9-1", 9)
    await peer.report("w9-1", AgentEvent.ENDED)
    go_on.touch()
    serving = await peer.report(ONE, AgentEvent.SERVING)
    assert serving.url is not None
    assert serving.url.endswith("/user/olivia/anew/")
    assert len(agent.workloads()) == 1


async def test_no_secret_is_written_or_logged(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Neither the machine's token nor a workload's is in a log, ledger or argument."""
    agent.settings["simulation"] = {"fault": "stop_fails_once"}
    agent.start("--debug")
    await peer.greeted(1)
    peer.launch(ONE, 1, a_spec(arguments=(f"--token={SECRET}",)))
    await peer.report(ONE, AgentEvent.SERVING)
    (workload,) = agent.workloads()
    command = await asyncio.to_thread(Path(f"/proc/{workload}/cmdline").read_bytes)
    peer.stop(ONE, 1)
    await peer.report(ONE, AgentEvent.ENDED)
    files = [file for file in agent.folder.rglob("*") if file.is_file()]
    assert len(files) > 2
    texts = [command, agent.told().encode(), *(file.read_bytes() for file in files)]
    assert not any(SECRET.encode() in text for text in texts)
    assert peer.token not in agent.told()
