"""The machines page and its commands, with the real service and a scripted agent."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from fleet_controller import an_ask
from fleet_service import Service, a_service
from rich_machine import a_rich_picture, a_usage
from scripted_agent import ScriptedAgent
from service_browser import Browser

from fleet_contracts.protocol import CapabilitiesChanged, Heartbeat, Redetect
from fleet_hub.admission import OutcomeKind
from fleet_hub.cli import main


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

HOSTILE = "<script>alert('x')</script>\x1b[2J"


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with a machine owner, somebody else and an admin."""
    async with a_service(tmp_path) as running:
        running.hub.add_user("alice")
        running.hub.add_user("bob")
        running.hub.add_user("root", admin=True)
        yield running


async def a_machine(
    service: Service, name: str = "box", owner: str = "alice", *, text: str = ""
) -> ScriptedAgent:
    """Return the agent of a machine that has told everything."""
    agent = ScriptedAgent(service, await service.enrol(name, owner))
    await agent.connect()
    picture = a_rich_picture(datetime.now(UTC), text=text)
    await agent.say(
        CapabilitiesChanged(capabilities=picture.model_dump(mode="json", by_alias=True))
    )
    await agent.settle()
    return agent


async def command(service: Service, *arguments: str) -> int:
    """Return the exit status of ``jupyter-fleet`` on the Hub's machine."""
    data = str(service.folder / "data")
    return await asyncio.to_thread(main, [*arguments, "--data-dir", data])


async def test_an_owner_walks_from_the_index_to_another_look(service: Service) -> None:
    """Index, page, button: the agent is asked, and the page says so."""
    agent = await a_machine(service)
    browser = Browser(service, "alice")
    _, index = await browser.visit("")
    assert f'href="{"/services/fleet/"}machines"' in index
    _, listed = await browser.visit("machines")
    assert f'href="{"/services/fleet/"}machines/box"' in listed
    code, page = await browser.visit("machines/box")
    assert code == 200
    for words in (
        "online for",
        "Owner: alice",
        "Provider: local",
        "implemented, and not yet run on this hardware",
        "docker: not usable",
        "own word",
        "observation",
        "utilisation 97 %",
        "Source and age",
    ):
        assert words in page, words

    target = f"{service.url}machines/box/redetect"
    code, _, _ = await browser.fetch(target, body=urlencode({"_xsrf": "wrong"}))
    assert code == 403
    await agent.settle()
    assert not any(isinstance(message, Redetect) for message in agent.heard)

    proof = re.search(r'name="_xsrf" value="([^"]+)"', page)
    assert proof is not None
    code, location, _ = await browser.fetch(
        target, body=urlencode({"_xsrf": proof.group(1)})
    )
    assert code == 303
    await agent.until(
        lambda: any(isinstance(message, Redetect) for message in agent.heard)
    )
    path = location.removeprefix("/services/fleet/").partition("#")[0]
    _, page = await browser.visit(path)
    assert "Asked to look at itself again" in page
    await agent.hang_up()


async def test_a_machine_that_is_away_says_so(service: Service) -> None:
    """The button is there, and its answer is that nobody could be asked."""
    agent = await a_machine(service)
    await agent.hang_up()
    browser = Browser(service, "alice")
    _, page = await browser.visit("machines/box")
    assert "offline for" in page
    proof = re.search(r'name="_xsrf" value="([^"]+)"', page)
    assert proof is not None
    _, location, _ = await browser.fetch(
        f"{service.url}machines/box/redetect",
        body=urlencode({"_xsrf": proof.group(1)}),
    )
    path = location.removeprefix("/services/fleet/").partition("#")[0]
    _, page = await browser.visit(path)
    assert "could not be asked" in page


async def test_everybody_sees_the_machines_that_are_theirs(service: Service) -> None:
    """An admin all of them, an owner their own, somebody else one sentence."""
    await service.enrol("alices-box", "alice")
    await service.enrol("carols-box", "carol")
    _, page = await Browser(service, "root").visit("machines")
    assert "alices-box" in page
    assert "carols-box" in page
    _, page = await Browser(service, "alice").visit("machines")
    assert "alices-box" in page
    assert "carols-box" not in page
    browser = Browser(service, "bob")
    _, page = await browser.visit("machines?q=carols-box")
    assert "Nothing here matches “carols-box”." in page
    _, page = await browser.visit("machines")
    assert "You own no machine of this fleet." in page
    assert "-box" not in page
    hidden, missing = await browser.visit("machines/carols-box")
    assert (hidden, missing) == await browser.visit("machines/no-such-box")
    assert hidden == 404


async def test_a_hostile_machine_stays_text_on_the_page(service: Service) -> None:
    """Whatever a tool prints, no markup of it reaches the browser."""
    agent = await a_machine(service, text=HOSTILE)
    for path in ("machines", "machines/box"):
        _, page = await Browser(service, "root").visit(path)
        assert "alert(" in page
        assert "<script>alert" not in page
        assert "\x1b" not in page
        assert page.count("<script") == 1, "the service's own, and no other"
    await agent.hang_up()


async def test_the_page_shows_what_a_machine_holds(service: Service) -> None:
    """With a link to the server's page for those who may see it."""
    agent = ScriptedAgent(service, await service.enrol())
    await agent.connect()
    start = await AttendedStart(service, an_ask()).open()
    assert (await start.ended()).kind is OutcomeKind.READY
    workload = (await service.status())["workload"]
    _, page = await Browser(service, "alice").visit("machines/box")
    assert f"workloads/{workload}" in page
    assert "server “default” of alice, ready: 1 core, 1.0 GiB" in unescape(page)
    await agent.hang_up()


async def test_an_observation_of_a_heartbeat_is_on_the_page(service: Service) -> None:
    """Free memory is renewed without a change of facts; a broken one costs nothing."""
    agent = await a_machine(service)
    usage = a_usage(datetime.now(UTC), free_mib=123).model_dump(mode="json")
    for told in (usage, {"observed": HOSTILE}):
        await agent.say(Heartbeat(sent_at=datetime.now(UTC), usage=told))
    await agent.settle()
    assert agent.link is not None
    _, page = await Browser(service, "alice").visit("machines/box")
    assert "memory free 123 MiB" in page
    assert "memory free 559 MiB" not in page
    await agent.hang_up()


async def test_a_provider_of_the_record_is_shown(service: Service) -> None:
    """It is named at enrolment, and the machine's own claim does not count."""
    body = {"name": "box", "owner": "alice", "provider": "university"}
    for content in (body, body | {"provider": None}):
        await service.json("internal/machines", method="POST", body=content)
    shown = await service.json("internal/machines")
    assert shown["machines"][0]["provider"] == "university"
    response = await service.fetch(
        "internal/machines", method="POST", body=body | {"provider": "x" * 101}
    )
    assert response.code == 400


async def test_machines_are_shown_in_a_terminal(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """For people as text without a machine's control characters, and as JSON."""
    agent = await a_machine(service, text=HOSTILE)
    assert await command(service, "machines") == 0
    text = capsys.readouterr().out
    assert "box: online since" in text
    assert "owner alice, provider local" in text
    assert "\x1b" not in text
    assert await command(service, "machines", "--json") == 0
    text = capsys.readouterr().out
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["machines"][0]["name"] == "box"
    await agent.hang_up()


async def test_a_machine_is_asked_from_a_terminal(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit status tells whether it was there to be asked."""
    agent = await a_machine(service)
    assert await command(service, "redetect", "box") == 0
    await agent.until(
        lambda: any(isinstance(message, Redetect) for message in agent.heard)
    )
    entries = (await service.json("internal/audit?target=box"))["entries"]
    asked = pwd.getpwuid(os.getuid()).pw_name
    assert [e["actor"] for e in entries if "look" in e["action"]] == [asked]
    await agent.hang_up()
    assert await command(service, "redetect", "box") == 1
    assert "offline" in capsys.readouterr().err
    for name in ("other-box", "../servers/1-1/stop", "Box", ""):
        assert await command(service, "redetect", name) == 1
        assert f"there is no machine {name!r}" in capsys.readouterr().err


async def test_without_a_controller_the_terminal_says_what_to_do(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that no controller used, and a controller that has ended."""
    nowhere = str(tmp_path / "nowhere")
    assert await asyncio.to_thread(main, ["machines", "--data-dir", nowhere]) == 1
    assert "--data-dir" in capsys.readouterr().err
    await service.stop()
    assert await command(service, "machines") == 1
    assert "is the Hub running?" in capsys.readouterr().err
