"""Tables of the fleet page follow what happens: over one WebSocket, or by asking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from fleet_controller import an_ask
from fleet_looks import a_full_service, a_page
from fleet_service import Service
from patience import PATIENCE
from playwright.async_api import Page, expect
from service_browser import Browser
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with something to see on every page."""
    async with a_full_service(tmp_path) as running:
        yield running


def address(service: Service) -> str:
    """Return where news is told."""
    return service.url.replace("http", "ws", 1) + "news"


async def dial(service: Service, **headers: str) -> WebSocketClientConnection:
    """Open the link that a page opens."""
    return await service.dial(HTTPRequest(address(service), headers=headers))


async def told(link: WebSocketClientConnection) -> Any:
    """Return what is said next."""
    async with asyncio.timeout(PATIENCE):
        return await link.read_message()


async def one_more(service: Service, server: int) -> None:
    """Let alice wait for one more server."""
    start = AttendedStart(service, an_ask(server, class_name="whole"))
    await (await start.open()).until("waiting")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 401),
        ({"Authorization": "token hub-token-of-nobody"}, 401),
        ({"Authorization": "token hub-token-of-eve"}, 403),
        ({"Authorization": "Bearer spawner-secret-of-the-test"}, 401),
        (
            {
                "Authorization": "token hub-token-of-root",
                "Origin": "https://elsewhere.example.org",
            },
            403,
        ),
    ],
)
async def test_news_is_for_people_on_our_own_pages(
    service: Service, headers: dict[str, str], code: int
) -> None:
    """Nobody else hears that something happens, and no other site's page."""
    service.hub.add_user("eve", access=False)
    with pytest.raises(HTTPClientError) as refused:
        await dial(service, **headers)
    assert refused.value.code == code


async def test_a_link_says_the_number_of_now_and_another_one_after_a_change(
    service: Service,
) -> None:
    """And nothing that is about anybody; one that speaks is hung up on."""
    link = await dial(service, Authorization="token hub-token-of-alice")
    now = await told(link)
    await one_more(service, 4)
    later = await told(link)
    assert later != now
    assert later.partition("-")[0] == now.partition("-")[0]
    assert {*f"{now}{later}"} <= {*"0123456789abcdef-"}
    await link.write_message("hello")
    await service.heard_out(link)


async def cookies_of(service: Service, who: str) -> list[dict[str, str]]:
    """Return a browser's cookies after *who* has logged in."""
    browser = Browser(service, who)
    code, _ = await browser.visit("line")
    assert code == 200
    return [
        {"name": name, "value": value, "url": service.url}
        for name, value in browser.cookies.items()
        if name != "who"
    ]


@asynccontextmanager
async def the_line(service: Service, path: str = "line") -> AsyncIterator[Page]:
    """Open a page whose clock stands: nothing on it happens by time."""
    async with a_page(cookies=await cookies_of(service, "root")) as page:
        await page.clock.install()
        async with page.expect_websocket() as linked:
            await page.goto(service.url + path)
            link = await linked.value
        await link.wait_for_event("framereceived")
        # Before anything of the page's is due.
        await page.clock.pause_at(await page.evaluate("Date.now() / 1000") + 0.5)
        yield page


@pytest.mark.browser
async def test_a_change_is_shown_at_once_on_every_table(service: Service) -> None:
    """Without a reload, and though no time passes on the page."""
    for server, path in enumerate(("line", "", "holds"), start=4):
        async with the_line(service, path) as page:
            table = page.locator("[data-xsrf]")
            before = await table.inner_text()
            if path == "holds":
                await service.json("internal/servers/1-1/stop?wait=0", method="POST")
            else:
                await one_more(service, server)
            await expect(table).not_to_have_text(before, use_inner_text=True)


@pytest.mark.browser
async def test_a_page_to_which_nothing_happens_asks_for_nothing(
    service: Service,
) -> None:
    """Though others read theirs: reading is no news."""
    async with the_line(service) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await page.clock.fast_forward(30_000)
        async with the_line(service):
            pass
        await page.evaluate("0")
        assert asked == []


@pytest.mark.browser
async def test_rows_stay_under_a_hand_and_come_as_soon_as_it_lets_go(
    service: Service,
) -> None:
    """A selection, a pointer on a link, an open question: each holds the rows."""
    async with the_line(service) as page:
        rows = page.locator("[data-xsrf] table").first.locator("tbody tr")
        held = page.get_by_text("while you work in it")
        count = await rows.count()
        select = (
            "getSelection().selectAllChildren(document.querySelector('[data-xsrf] td'))"
        )
        letting_go = {
            "selection": (
                lambda: page.evaluate(select),
                lambda: page.evaluate("getSelection().removeAllRanges()"),
            ),
            "pointer": (
                lambda: rows.first.locator("th a").hover(),
                lambda: page.mouse.move(1, 1),
            ),
            "question": (
                lambda: rows.first.locator("summary").first.press("Enter"),
                lambda: page.evaluate(
                    "document.querySelector('details[open]').open = false;"
                    "document.activeElement.blur()"
                ),
            ),
        }
        for server, (hold, let_go) in enumerate(letting_go.values(), start=4):
            await hold()
            await one_more(service, server)
            await expect(held).to_be_visible()
            await expect(rows).to_have_count(count)
            await let_go()
            count += 1
            async with asyncio.timeout(PATIENCE):
                while await rows.count() != count:
                    await page.clock.run_for(100)
            await expect(held).to_have_count(0)


@pytest.mark.browser
async def test_a_page_finds_its_way_back_after_the_controller_was_away(
    service: Service,
) -> None:
    """It links again by itself, and sees by the number that it missed something."""
    async with the_line(service) as page:
        rows = page.locator("[data-xsrf] table").first.locator("tbody tr")
        count = await rows.count()
        await service.kill_child()
        await one_more(service, 4)
        async with page.expect_websocket() as linked:
            await page.clock.run_for(5_000)
            await linked.value
        await expect(rows).to_have_count(count + 1)
