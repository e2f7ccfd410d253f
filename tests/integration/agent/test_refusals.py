"""What stops an agent, or keeps it away: each with its own clear sentence."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from agent_process import AgentProcess
from agent_support import AT, a_spec
from controller_peer import ControllerPeer

from fleet_agent.examination.looking import folder_findings
from fleet_agent.ledger import Ledger
from fleet_agent.ledger_entry import Key
from fleet_agent.state_folder import StateFolder
from fleet_contracts.protocol import AgentEvent, Goodbye


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


async def test_a_second_agent_on_the_same_folder_is_refused(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """The first one goes on undisturbed."""
    agent.start()
    await peer.greeted(1)
    second = AgentProcess.__new__(AgentProcess)
    second.__dict__.update(agent.__dict__)
    second.log = agent.log.with_suffix(".second")
    second.start()
    assert await second.exit_status() == os.EX_TEMPFAIL
    assert "another agent works in" in second.told()
    assert len(peer.hellos) == 1


async def test_a_wrong_token_is_a_clear_line_and_a_slow_retry(
    peer: ControllerPeer, new_agent: Callable[..., AgentProcess]
) -> None:
    """The agent does not hammer the controller, and does not give up either."""
    agent = new_agent(token="wrong")
    agent.start()
    await peer.until(lambda: peer.refusals)
    await agent.until_told("refused this machine's token")
    await agent.until_told("ending=denied")
    assert peer.refusals == 1
    assert peer.hellos == []
    assert "wrong" not in agent.told()
    assert await agent.end() == 0


@pytest.mark.parametrize(
    ("mode", "content", "sentence"),
    [
        (0o644, "t0k3n", "chmod 600"),
        (0o600, "", "holds no token"),
        (0o600, "two words", "holds no token"),
    ],
)
async def test_a_token_file_that_is_not_private_or_empty_is_refused(
    agent: AgentProcess, mode: int, content: str, sentence: str
) -> None:
    """The agent says what to do, before it talks to anybody."""
    token = agent.folder / "token"
    token.write_text(content)
    token.chmod(mode)
    agent.start()
    assert await agent.exit_status() == os.EX_CONFIG
    assert sentence in agent.told()


async def test_a_missing_token_is_explained(agent: AgentProcess) -> None:
    """Somebody who has not enrolled is told to."""
    (agent.folder / "token").unlink()
    agent.start()
    assert await agent.exit_status() == os.EX_CONFIG
    assert "fleet-agent enrol" in agent.told()


async def test_a_state_folder_that_others_can_enter_is_refused(
    agent: AgentProcess,
) -> None:
    """The folder holds a token and notebooks."""
    agent.folder.chmod(0o755)
    agent.start()
    assert await agent.exit_status() == os.EX_CONFIG
    assert "chmod 700" in agent.told()


async def test_a_corrupt_ledger_stops_the_agent_and_is_kept(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """It neither starts with an empty one nor touches the damaged one."""
    agent.start()
    await peer.greeted(1)
    await agent.kill()
    ledger = agent.folder / "ledger.sqlite"
    ledger.write_bytes(b"not a database, for sure" * 400)
    damaged = ledger.read_bytes()
    agent.start()
    assert await agent.exit_status() == os.EX_DATAERR
    assert "Restore it from a copy" in agent.told()
    assert ledger.read_bytes() == damaged
    assert len(peer.hellos) == 1


@pytest.mark.parametrize(
    ("code", "status"), [("protocol_unsupported", os.EX_PROTOCOL), ("revoked", 77)]
)
async def test_an_agent_that_is_sent_away_for_good_ends(
    peer: ControllerPeer, agent: AgentProcess, code: str, status: int
) -> None:
    """It says what the controller said, and what to do."""
    peer.goodbye = Goodbye(code=code, message="Speak protocol 9 here.", retry=False)
    agent.start()
    assert await agent.exit_status() == status
    assert "Speak protocol 9 here." in agent.told()
    # And whoever asks later why nothing runs here reads it too.
    finding = next(
        it
        for it in folder_findings(StateFolder(agent.folder), agent.folder / "token")
        if it.subject == "agent"
    )
    assert finding.ok is False
    assert "Speak protocol 9 here; " in finding.text
    assert f"fleet-agent run --state-dir {agent.folder}" in finding.remedy
    peer.goodbye = None
    agent.start()
    await peer.greeted(1)
    assert not StateFolder(agent.folder).ended.exists()


async def test_an_agent_that_may_come_again_does_so_slowly(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Another protocol may be spoken after an upgrade."""
    peer.goodbye = Goodbye(code="protocol_unsupported", message="Not yet.")
    agent.start()
    await agent.until_told("ending=postponed")
    assert "Not yet." in agent.told()
    assert len(peer.hellos) == 1
    assert await agent.end() == 0


async def test_a_controller_that_breaks_the_protocol_loses_a_link_not_the_agent(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """The agent comes back, and the bad message did nothing."""
    agent.start()
    await peer.greeted(1)
    peer.say_raw('{"type": "launch", "allocation": 5}')
    await peer.greeted(2)
    peer.say_raw("[]")
    await peer.greeted(3)
    assert "the controller broke the protocol" in agent.told()


async def test_a_goodbye_for_a_moment_brings_the_agent_back_soon(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """A second link for the same machine resolves itself."""
    peer.goodbye = Goodbye(code="duplicate_link", message="Another link lives.")
    agent.start()
    await peer.until(lambda: len(peer.hellos) >= 3)
    peer.goodbye = None
    await peer.greeted(1)


async def test_a_long_inventory_comes_in_pages(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Every allocation of the ledger is shown, however many there are."""
    ledger = Ledger(agent.folder / "ledger.sqlite")
    for number in range(450):
        key = Key(f"w{number}-1", number + 1)
        ledger.open(key, AgentEvent.ACCEPTED, at=AT, spec=a_spec())
        ledger.report(key, AgentEvent.ENDED, at=AT)
        ledger.acknowledge(key, 2, at=AT)
    ledger.close()
    agent.start()
    hello = await peer.greeted(1)
    assert hello.inventory_size == 450
    assert hello.highest_epoch == 450
    assert len({item.allocation for item in peer.inventories[0]}) == 450


async def test_an_allocation_without_its_driver_keeps_what_it_holds(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Nobody can say that nothing of it runs, so nobody does."""
    agent.start()
    await peer.greeted(1)
    peer.launch("w1-1", 1, a_spec())
    await peer.report("w1-1", AgentEvent.SERVING)
    await agent.kill()
    agent.settings["drivers"] = []
    agent.start()
    await peer.greeted(2)
    peer.stop("w1-1", 1)
    await agent.until_told("an allocation has no driver")
    (item,) = peer.inventories[1]
    assert item.event is AgentEvent.SERVING
    assert len(agent.workloads()) == 1
