"""Asking a holder for what they hold, with a real service: by page, program and browser."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fleet_service import Service, a_service
from narrow_page import a_page
from page_visits import Visit, add_people, entries
from playwright.async_api import expect
from service_browser import Browser
from shared_box import a_shared_box, alice_holds, waits


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service that knows alice, bob and an admin."""
    async with a_service(tmp_path) as running:
        add_people(running.hub)
        yield running


async def timeline(service: Service, who: str, workload: str) -> dict[str, Any]:
    """Return somebody's own timeline."""
    path, token = f"api/workloads/{workload}/timeline", f"token hub-token-of-{who}"
    document: dict[str, Any] = await service.json(path, token=token)
    return document


def notes(document: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return the reasons that were noted, with whom each is about."""
    return [
        (event["explanation"]["reason"], event["explanation"].get("subject"))
        for event in document["events"]
        if event["kind"] == "note"
    ]


async def asks(service: Service, who: str, workload: str, handle: str) -> Any:
    """Ask as a program does; return status and answer."""
    answer = await service.fetch(
        f"api/workloads/{workload}/ask",
        method="POST",
        body={"holder": handle},
        token=f"token hub-token-of-{who}",
    )
    return answer.code, json.loads(answer.body)


async def test_a_holder_is_asked_from_the_page_and_reads_it(service: Service) -> None:
    """Once, by nobody's forged form; the log says who asked, and a kill changes nothing."""
    agent = await a_shared_box(service)
    mine, wanted = await alice_holds(service), await waits(service)
    bob = Visit(service, "bob")
    page, deed = f"workloads/{wanted}/why", f"workloads/{wanted}/ask"
    (holder,) = (await timeline(service, "bob", wanted))["explanation"]["holders"]
    code, _ = await bob.submit(page, deed, proof="guessed", holder=holder["handle"])
    assert code == 403
    assert notes(await timeline(service, "alice", mine)) == []

    code, shown = await bob.submit(page, deed, holder=holder["handle"])
    assert code == 200
    assert "alice" in shown
    assert "asked for it at" in shown
    assert "Ask to release</button>" not in shown
    assert (await entries(service))[-1] == ("bob", "release_asked", wanted)
    assert notes(await timeline(service, "alice", mine)) == [("release_wished", "bob")]
    assert notes(await timeline(service, "bob", wanted)) == [("release_asked", None)]

    await service.kill_child()
    await agent.gone()
    await agent.connect()
    code, told = await asks(service, "bob", wanted, holder["handle"])
    assert (code, told["asked"]) == (200, True)
    assert notes(await timeline(service, "alice", mine)) == [("release_wished", "bob")]
    (holder,) = (await timeline(service, "bob", wanted))["explanation"]["holders"]
    assert holder["asked_at"] == told["asked_at"].replace("+00:00", "Z")
    assert (await service.status("1-1"))["state"] == "ready", "nothing was stopped"
    _, shown = await Browser(service, "alice").visit(f"workloads/{mine}")
    assert "Somebody, bob, waits for what this server holds" in shown
    await agent.hang_up()


async def test_a_program_may_ask_for_what_it_waits_for_and_nothing_else(
    service: Service,
) -> None:
    """What is not its own, not known, over, or no handle at all is refused."""
    agent = await a_shared_box(service)
    mine, wanted = await alice_holds(service), await waits(service)
    (holder,) = (await timeline(service, "bob", wanted))["explanation"]["holders"]
    handle = holder["handle"]
    assert (await asks(service, "alice", wanted, handle))[0] == 404
    assert (await asks(service, "bob", mine, handle))[0] == 404
    for wrong in ("0" * 24, mine, "' or 1=1"):
        code, told = await asks(service, "bob", wanted, wrong)
        assert (code, told["reason"]) == (409, "invalid_request")
    for none in ("", "x" * 65):
        assert (await asks(service, "bob", wanted, none))[0] == 400
    code, told = await asks(service, "alice", mine, handle)
    assert (code, told["reason"]) == (409, "invalid_request")
    for launch in agent.launches:
        await agent.end(launch)
    await agent.settle()
    code, told = await asks(service, "bob", wanted, handle)
    assert code == 409, "its holder has ended in between"
    assert (await asks(service, "root", wanted, handle))[0] == 409
    assert notes(await timeline(service, "alice", mine)) == []
    await agent.hang_up()


async def test_an_admin_presses_for_whoever_waits(service: Service) -> None:
    """The holder reads for whom, and the log who pressed."""
    agent = await a_shared_box(service)
    mine, wanted = await alice_holds(service), await waits(service)
    (holder,) = (await timeline(service, "root", wanted))["explanation"]["holders"]
    assert (await asks(service, "root", wanted, holder["handle"]))[0] == 200
    assert notes(await timeline(service, "alice", mine)) == [("release_wished", "bob")]
    assert (await entries(service))[-1] == ("root", "release_asked", wanted)
    await agent.hang_up()


async def test_where_names_are_hidden_neither_side_learns_one(service: Service) -> None:
    """Nor the other's workload, from any page or document of theirs."""
    await service.stop()
    service.arguments = ["--FleetService.names_visible=False"]
    await service.start()
    agent = await a_shared_box(service)
    mine, wanted = await alice_holds(service), await waits(service)
    (holder,) = (await timeline(service, "bob", wanted))["explanation"]["holders"]
    bob, deed = Visit(service, "bob"), f"workloads/{wanted}/ask"
    await bob.submit(f"workloads/{wanted}", deed, holder=holder["handle"])

    async def read(who: str, workload: str) -> str:
        page, token = f"workloads/{workload}", f"token hub-token-of-{who}"
        browser = Browser(service, who)
        texts = [(await browser.visit(page + more))[1] for more in ("", "/why")]
        for more in ("timeline", "explain"):
            answer = await service.fetch(f"api/{page}/{more}", token=token)
            texts.append(answer.body.decode())
        return "".join(texts)

    (launch,) = agent.launches
    asker, asked = await read("bob", wanted), await read("alice", mine)
    assert "somebody else" in asker
    assert "asked for it at" in asker
    assert "Somebody waits for what this server holds" in asked
    for secret in ("alice", mine, launch.allocation):
        assert secret not in asker
    for secret in ("bob", wanted):
        assert secret not in asked
    await agent.hang_up()


@pytest.mark.browser
async def test_a_press_of_the_button_reaches_the_holder_who_looks(
    service: Service,
) -> None:
    """Bob's page says that it was asked, and Alice's open page what Bob asks for."""
    agent = await a_shared_box(service)
    mine, wanted = await alice_holds(service), await waits(service)
    async with a_page(service, who="alice") as hers, a_page(service, who="bob") as his:
        await hers.goto(f"{service.url}workloads/{mine}")
        await his.goto(f"{service.url}workloads/{wanted}")
        holders = his.locator("#holders")
        await expect(holders.get_by_role("listitem")).to_contain_text("alice")
        button = his.get_by_role("button", name="Ask to release")
        await expect(button).to_have_accessible_name(
            "Ask to release: alice (JupyterLab) with no known end"
        )
        assert await his.evaluate("document.documentElement.scrollWidth") == 380
        await button.press("Enter")
        await expect(holders.get_by_role("listitem")).to_contain_text("asked for it at")
        await expect(button).to_have_count(0)
        step = his.locator('li[aria-current="step"]')
        await expect(step).to_contain_text("asked for it at")
        since = hers.get_by_role("list", name="Since then")
        await expect(since).to_contain_text(
            "Somebody, bob, waits for what this server holds, and asks for it."
        )
    assert (await service.status("1-1"))["state"] == "ready"
    await agent.hang_up()


@pytest.mark.browser
async def test_an_open_page_offers_who_holds_it_by_now(service: Service) -> None:
    """Another took the place meanwhile: the page follows without a reload."""
    agent = await a_shared_box(service)
    await alice_holds(service)
    await waits(service, "carol", 3)
    wanted = await waits(service)
    async with a_page(service, who="bob") as his:
        await his.goto(f"{service.url}workloads/{wanted}")
        holders = his.locator("#holders")
        await expect(holders.get_by_role("listitem")).to_contain_text("alice")
        for launch in agent.launches:
            await agent.end(launch)
        await expect(holders.get_by_role("listitem")).to_contain_text("carol")
        await expect(holders).not_to_contain_text("alice")
    await agent.hang_up()
