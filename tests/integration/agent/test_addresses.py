"""The agent has its address tried: it listens for a moment, answers one nonce, no more."""

from __future__ import annotations

import asyncio

import pytest
from agent_process import AgentProcess
from controller_peer import ControllerPeer
from patience import PATIENCE

from fleet_contracts.enrolment import GREETING, LONGEST_LINE, answer_to
from fleet_contracts.protocol import AddressOffer, AddressVerdict, Redetect
from fleet_contracts.reasons import Explanation, Reason


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


def offers(peer: ControllerPeer) -> list[AddressOffer]:
    """Return the offers that were heard."""
    return [message for message in peer.heard if isinstance(message, AddressOffer)]


async def offered(peer: ControllerPeer, count: int = 1) -> AddressOffer:
    """Return the *count*-th offer once it was heard."""
    await peer.until(lambda: len(offers(peer)) >= count)
    return offers(peer)[count - 1]


async def asked(offer: AddressOffer, line: bytes) -> bytes:
    """Return what the listener answers to *line*."""
    reader, writer = await asyncio.open_connection(offer.address, offer.port)
    try:
        writer.write(line)
        return await asyncio.wait_for(reader.read(1000), PATIENCE)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_the_address_is_offered_until_it_was_tried(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Refused, it is offered again when somebody asks to look again; approved, never."""
    peer.welcome = peer.welcome.model_copy(update={"wants_address": True})
    agent.start()
    offer = await offered(peer)
    assert offer.address == "127.0.0.1"
    nonce = "a-nonce"
    line = f"{GREETING} {nonce}\n".encode()
    assert await asked(offer, line) == f"{answer_to(nonce, offer.key)}\n".encode()
    for noise in (
        b"GET / HTTP/1.1\r\n\r\n",
        f"{GREETING} \n".encode(),
        b"\xff\xfe\n",
        b"x" * (2 * LONGEST_LINE),
    ):
        assert await asked(offer, noise) == b""

    why = Explanation(reason=Reason.ADDRESS_UNREACHABLE, subject=offer.address)
    peer.say(AddressVerdict(address=offer.address, explanation=why))
    await agent.until_told("does not lead notebooks to this machine")
    assert "firewall" in agent.told()
    with pytest.raises(ConnectionRefusedError):
        await asked(offer, line)

    peer.say(Redetect())
    again = await offered(peer, 2)
    assert again.key != offer.key
    peer.say(AddressVerdict(address=again.address))
    await agent.until_told("address approved")
    peer.say(Redetect())
    heard = len(peer.heard)
    await peer.until(lambda: len(peer.heard) > heard + 2)
    assert len(offers(peer)) == 2


async def test_an_approved_address_is_not_offered(
    peer: ControllerPeer, agent: AgentProcess
) -> None:
    """Neither where the controller knows it nor where it wants none."""
    for update in (
        {"wants_address": True, "approved_address": "127.0.0.1"},
        {"wants_address": False},
    ):
        peer.welcome = peer.welcome.model_copy(update=update)
        agent.start()
        await peer.until(lambda: peer.heard and peer.heard[-1].type == "heartbeat")
        await agent.end()
        assert offers(peer) == []
        peer.heard.clear()
