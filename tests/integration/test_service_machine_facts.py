"""What a machine says of itself: asked for, taken in at once, and never its identity."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from fake_agent import some_capabilities
from fleet_controller import an_ask
from fleet_service import Service, a_service
from scripted_agent import ScriptedAgent

from fleet_contracts.capabilities import Origin
from fleet_contracts.protocol import CapabilitiesChanged, Redetect
from fleet_hub.admission import OutcomeKind


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with a machine owner and an admin."""
    async with a_service(tmp_path) as running:
        running.hub.add_user("alice")
        running.hub.add_user("root", admin=True)
        yield running


async def ask_again(service: Service, token: str, machine: str = "box") -> bool:
    """Ask *machine* to look at itself; return whether it was there to be asked."""
    response = await service.fetch(
        f"api/machines/{machine}/redetect", method="POST", body={}, token=token
    )
    assert response.code == 200, response.body
    return b'"asked": true' in response.body or b'"asked":true' in response.body


async def test_a_machine_is_asked_to_look_at_itself(service: Service) -> None:
    """Its owner and an admin may ask; the agent hears it at once."""
    agent = ScriptedAgent(service, await service.enrol(owner="alice"))
    await agent.connect()
    for token in ("token hub-token-of-alice", "token hub-token-of-root"):
        agent.heard.clear()
        assert await ask_again(service, token)
        await agent.until(
            lambda: any(isinstance(message, Redetect) for message in agent.heard)
        )
    await agent.hang_up()


async def test_a_machine_that_is_away_cannot_be_asked(service: Service) -> None:
    """The answer says so, and it looks again anyhow when it comes back."""
    await service.enrol(owner="alice")

    assert not await ask_again(service, "token hub-token-of-alice")


async def test_a_new_picture_is_used_at_once(service: Service) -> None:
    """Nothing starts on a machine that does not know itself; once it does, it starts."""
    agent = ScriptedAgent(service, await service.enrol())
    await agent.connect()
    await agent.say(CapabilitiesChanged(capabilities={}))
    await agent.settle()
    start = await AttendedStart(service, an_ask()).open()
    await start.until("waiting")
    assert agent.launches == []

    await agent.say(CapabilitiesChanged(capabilities=some_capabilities()))
    assert (await start.ended()).kind is OutcomeKind.READY
    await agent.hang_up()


async def test_who_a_machine_is_comes_from_the_record(service: Service) -> None:
    """A machine that calls itself somebody else's is shown as what it is."""
    agent = ScriptedAgent(service, await service.enrol(owner="alice"))
    await agent.connect()
    claim = some_capabilities(cores=2) | {
        "identity": {
            name: {"value": "mallory"} for name in ("name", "owner", "provider")
        }
    }
    await agent.say(CapabilitiesChanged(capabilities=claim))
    await agent.settle()
    shown = await service.json("api/machines", token="token hub-token-of-root")
    picture = shown["machines"][0]["capabilities"]

    assert picture["identity"]["owner"]["value"] == "alice"
    assert picture["identity"]["name"]["value"] == "box"
    assert {fact["observed"]["origin"] for fact in picture["identity"].values()} == {
        Origin.RECORD
    }
    assert picture["host"]["cores_allowed_milli"]["value"] == 2000
    await agent.hang_up()
