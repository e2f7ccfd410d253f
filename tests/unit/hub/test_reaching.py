"""Trying a machine's address: who may be led there, and what keeps it so."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from fake_agent import FakeAgent
from fleet_controller import Fleet, ScriptedNetwork

from fleet_contracts.allocations import State
from fleet_contracts.protocol import AddressOffer, AgentEvent, Welcome
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.controller import enrolling, reaching, stopping
from fleet_hub.controller.audit_entry import Action
from fleet_hub.controller.settings import Settings


pytestmark = pytest.mark.asyncio

KEY = "the-key-of-this-machine"


def an_offer(address: str = "10.1.2.3", key: str = KEY) -> AddressOffer:
    """Return what an agent offers."""
    return AddressOffer(address=address, port=5000, key=key)


def a_fleet() -> Fleet:
    """Return a fleet with one machine elsewhere, which answers at 10.1.2.3."""
    fleet = Fleet(
        settings=Settings(trusted_networks=(ip_network("10.0.0.0/8"),)),
        network=ScriptedNetwork(keys={"10.1.2.3": KEY}),
    )
    enrolling.enrol(fleet.core, name="far", owner="alice", local=False)
    return fleet


async def offered(fleet: Fleet, offer: AddressOffer) -> Explanation | None:
    """Offer after the rest that a machine has to keep."""
    fleet.clock.advance(10)
    return await reaching.try_offer(fleet.core, "far", offer)


async def test_work_comes_only_after_the_address_was_tried() -> None:
    """Until then the line says so, without the address itself."""
    fleet = a_fleet()
    agent = FakeAgent(fleet.core, fleet.registry, "far")
    agent.connect()
    welcome = agent.heard[0]
    assert isinstance(welcome, Welcome)
    assert (welcome.wants_address, welcome.approved_address) == (True, None)
    record = fleet.ask()
    assert fleet.get(record).state is State.QUEUED
    why = fleet.get(record).explanation
    assert why is not None
    assert why.reason is Reason.ADDRESS_UNKNOWN
    assert await offered(fleet, an_offer()) is None
    fleet.cycle()
    assert fleet.get(record).state is State.PLACED
    (allocation,) = agent.launched
    agent.report(allocation, AgentEvent.ACCEPTED)
    agent.report(allocation, AgentEvent.PREPARED)
    agent.report(allocation, AgentEvent.SERVING, url="http://10.1.2.3:6000/x/")
    assert fleet.get(record).url == "http://10.1.2.3:6000/x/"


async def test_an_address_that_somebody_else_answers_at_is_not_approved() -> None:
    """Neither another key nor silence proves anything."""
    fleet = a_fleet()
    for offer in (an_offer(key="the-key-of-somebody-else"), an_offer("10.9.9.9")):
        fault = await offered(fleet, offer)
        assert fault is not None
        assert fault.reason is Reason.ADDRESS_UNREACHABLE
        assert fleet.core.model.machines["far"].address is None


async def test_a_forbidden_address_is_not_even_tried() -> None:
    """The controller connects to nothing that it would not route to."""
    fleet = a_fleet()
    fleet.network.hubs.add("10.0.0.1")
    fleet.network.names["both.example"] = ("10.1.2.3", "127.0.0.1")
    for address in ("127.0.0.1", "169.254.169.254", "10.0.0.1", "both.example"):
        fault = await offered(fleet, an_offer(address))
        assert fault is not None
        assert fault.reason is Reason.ADDRESS_REFUSED
    fault = await offered(fleet, an_offer("192.168.0.1"))
    assert fault is not None
    assert fault.reason is Reason.NETWORK_NOT_TRUSTED
    fault = await offered(fleet, an_offer("nowhere.example"))
    assert fault is not None
    assert fault.reason is Reason.ADDRESS_REFUSED
    assert fleet.network.tried == []


async def test_a_second_try_has_to_wait() -> None:
    """Nobody scans a network through the controller; the first answer stays."""
    fleet = a_fleet()
    assert await offered(fleet, an_offer()) is None
    fault = await reaching.try_offer(fleet.core, "far", an_offer("10.1.2.4"))
    assert fault is not None
    assert fault.reason is Reason.ADDRESS_UNKNOWN
    assert fleet.core.model.machines["far"].address is not None
    assert len(fleet.network.tried) == 1


async def test_an_address_that_got_another_machine_meanwhile_is_refused() -> None:
    """Two machines may try one address at once; it is given once."""
    fleet = a_fleet()
    enrolling.enrol(fleet.core, name="other", owner="bob", local=False)
    assert await offered(fleet, an_offer()) is None
    fault = await reaching.try_offer(fleet.core, "other", an_offer())
    assert fault is not None
    assert fault.reason is Reason.ADDRESS_REFUSED
    stopping.declare_lost(fleet.core, "far")
    fleet.clock.advance(10)
    assert await reaching.try_offer(fleet.core, "other", an_offer()) is None


async def test_each_change_of_an_address_is_in_the_audit_log() -> None:
    """A repeated refusal is told once."""
    fleet = a_fleet()
    await offered(fleet, an_offer())
    for _ in range(3):
        await offered(fleet, an_offer("10.9.9.9"))
    told = [item.entry.action for item in reversed(fleet.store.audit())]
    assert told == [Action.ENROLLED, Action.ADDRESS_APPROVED, Action.ADDRESS_REFUSED]


async def test_the_hubs_own_machine_needs_no_try() -> None:
    """It serves on loopback."""
    fleet = a_fleet()
    enrolling.enrol(fleet.core, name="near", owner="alice", local=True)
    assert await reaching.try_offer(fleet.core, "near", an_offer("127.0.0.1")) is None
    assert fleet.network.tried == []
    agent = FakeAgent(fleet.core, fleet.registry, "near")
    agent.connect()
    assert isinstance(agent.heard[0], Welcome)
    assert not agent.heard[0].wants_address
