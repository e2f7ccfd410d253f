"""An agent keeps its owner's terms, and tells the controller which are not met."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import patient_agent
import pytest
from agent_process import AgentProcess
from agent_support import a_spec
from controller_peer import ControllerPeer

from fleet_agent.commands.drain import carry_out
from fleet_contracts.capabilities import WorkerCapabilities
from fleet_contracts.placement_facts import PlacementFacts, placement_facts
from fleet_contracts.protocol import AgentEvent, CapabilitiesChanged
from fleet_contracts.reasons import Reason


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


def command(agent: AgentProcess, word: str) -> str:
    """Run ``fleet-agent`` *word* for *agent*, as its owner does in a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "fleet_agent.cli", word, f"--state-dir={agent.folder}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


async def told(peer: ControllerPeer, closed: Reason | None, after: int = 0) -> int:
    """Return how much was heard when a later picture said that it is *closed* so."""

    def find() -> int:
        for number, message in enumerate(peer.heard[after:], after + 1):
            if isinstance(message, CapabilitiesChanged):
                picture = WorkerCapabilities.model_validate(message.capabilities)
                if placement_facts(picture).closed is closed:
                    return number
        return 0

    return await peer.until(find)


async def first(peer: ControllerPeer) -> PlacementFacts:
    """Return what the agent said when it came."""
    hello = await peer.greeted(1)
    return placement_facts(WorkerCapabilities.model_validate(hello.capabilities))


async def test_an_owner_may_drain_a_machine_from_its_own_terminal(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Nothing new starts, what runs runs on, and it ends with one word."""
    agent.start()
    await first(peer)
    peer.launch("before", 1, a_spec())
    await peer.report("before", AgentEvent.SERVING)

    said = command(agent, "drain")
    assert "takes nothing new" in said
    assert f"fleet-agent resume --state-dir {agent.folder}" in said
    heard = await told(peer, Reason.DRAINING)
    peer.launch("after", 1, a_spec(notebook="2-1"))
    rejected = await peer.report("after", AgentEvent.REJECTED)
    assert rejected.explanation is not None
    assert rejected.explanation.reason is Reason.DRAINING
    assert len(agent.workloads()) == 1

    assert "takes new work again" in command(agent, "resume")
    await told(peer, None, after=heard)
    peer.launch("later", 1, a_spec(notebook="3-1"))
    await peer.report("later", AgentEvent.SERVING)


@pytest.mark.parametrize("word", ["drain", "resume"])
async def test_nothing_is_promised_for_a_folder_without_an_agent(
    tmp_path: Path, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped folder drains nobody, and is not made."""
    folder = tmp_path / "mistyped"
    assert carry_out(word, [f"--state-dir={folder}"]) != 0
    assert f"{folder} cannot be read" in capsys.readouterr().err
    assert not folder.exists()


async def test_a_drained_machine_stays_so_when_its_agent_starts_again(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """The very first word says it, before anything could be placed."""
    command(agent, "drain")
    agent.start()

    assert (await first(peer)).closed is Reason.DRAINING


async def test_an_owner_lends_a_part_and_at_certain_hours(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """The controller hears what is lent; the agent refuses more by itself."""
    agent.settings |= {"max_cpu": "0.5", "max_memory": "256M"}
    agent.program = (patient_agent.__file__,)
    agent.start()
    facts = await first(peer)

    assert (facts.cores_milli, facts.memory_bytes) == (500, 256 << 20)
    assert facts.closed is None
    resources = a_spec().resources.model_copy(update={"cpu_milli": 600})
    peer.launch("large", 1, a_spec(resources=resources))
    rejected = await peer.report("large", AgentEvent.REJECTED)
    assert rejected.explanation is not None
    assert rejected.explanation.reason is Reason.CPU_BUSY


async def test_outside_its_hours_a_machine_takes_nothing(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """The end of the closed time is told, by the machine's own clock."""
    # A minute of another day of the week: never now.
    agent.settings["hours"] = f"{_another_day()} 12:00-12:01"
    agent.start()
    facts = await first(peer)

    assert facts.closed is Reason.OUTSIDE_HOURS
    assert facts.opens_at is not None


async def test_hours_that_mean_nothing_stop_the_agent_with_an_example(
    agent: AgentProcess,
) -> None:
    """A wrong setting is no setting."""
    agent.settings["hours"] = "when I sleep"
    agent.start()

    assert await agent.exit_status() != 0
    assert "write mon-fri" in agent.told()


def _another_day() -> str:

    return f"{datetime.now(UTC) + timedelta(days=3):%a}".lower()
