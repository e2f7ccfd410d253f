"""The fleet page in a real browser: contrast, names, keyboard, narrow, without scripts.

Pictures of each page in each theme are kept in ``artefacts``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from fleet_controller import an_ask
from fleet_looks import (
    ARTEFACTS,
    LOOKS,
    NARROW,
    PAGES,
    a_full_service,
    a_page,
    faults,
    violations,
    workload_pages,
)
from fleet_service import Service
from playwright.async_api import Route, expect


pytestmark = [pytest.mark.asyncio, pytest.mark.browser, pytest.mark.timeout(300)]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service with something to see on every page."""
    async with a_full_service(tmp_path) as running:
        yield running


@pytest.mark.timeout(900)
async def test_every_page_is_accessible_in_every_look(service: Service) -> None:
    """Light, dark, forced colours, narrow, and from right to left."""
    pages = PAGES | await workload_pages(service)
    wrong = []
    for look, how in LOOKS.items():
        async with a_page(**how) as page:
            for name, path in pages.items():
                await page.goto(service.url + path)
                if name.startswith("workload"):
                    await expect(page.locator(".fleet-Timeline-heard")).to_be_attached()
                wrong += await faults(page, name, look)
                if name == "line":
                    for more in await page.locator("details.leave > summary").all():
                        await more.click()
                    wrong += await faults(page, "line-forms", look)
    assert wrong == []


@pytest.mark.parametrize("who", ["alice", "carol", "bob"])
async def test_everybody_s_own_pages_are_accessible(service: Service, who: str) -> None:
    """Of somebody with servers, of an owner without, and of somebody with neither."""
    service.hub.add_user("carol")
    service.hub.add_user("bob")
    wrong = []
    for look in ("light", "dark", "narrow"):
        async with a_page(who=who, **LOOKS[look]) as page:
            for name, path in {
                "servers": "",
                "machines": "machines",
                "usage": "usage",
                "not-for-you": "line",
            }.items():
                answer = await page.goto(service.url + path)
                assert answer is not None
                assert answer.status == (403 if name == "not-for-you" else 200)
                wrong += await faults(page, f"{who}-{name}", look)
    assert wrong == []


async def test_a_machine_is_enrolled_without_a_script(service: Service) -> None:
    """By keyboard alone: the form, and a page with the command in the focus order."""
    async with a_page(script=False) as page:
        await page.goto(service.url + "machines")
        await page.get_by_label("Name of the machine").focus()
        await page.keyboard.type("far")
        await page.keyboard.press("Tab")
        await expect(page.get_by_label("Its owner")).to_be_focused()
        await page.keyboard.type("carol")
        await page.keyboard.press("Enter")
        command = page.locator("pre.command")
        await expect(command).to_contain_text("fleet-agent enrol --controller http")
        await page.screenshot(path=ARTEFACTS / "fleet-enrolled-light.png")
    async with a_page(scheme="dark", viewport=NARROW) as page:
        await page.goto(service.url + "machines")
        await page.get_by_label("Name of the machine").fill("farther")
        await page.get_by_role("button", name="Enrol a machine").click()
        await expect(page.locator("pre.command")).to_be_visible()
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await page.get_by_role("button", name="Copy the command").click()
        await expect(page.get_by_role("status")).to_have_text("Copied.")
        copied = await page.evaluate("navigator.clipboard.readText()")
        assert copied == await page.locator("pre.command").text_content()
        await page.screenshot(path=ARTEFACTS / "fleet-enrolled-dark-narrow.png")
        assert await violations(page) == []


async def test_a_table_is_read_again_but_not_under_somebody_s_hands(
    service: Service,
) -> None:
    """Who comes into the line is shown without a reload; an open question stays open."""
    async with a_page() as page:
        await page.clock.install()
        await page.goto(service.url + "line?q=alice")
        rows = page.locator("[data-xsrf] table").first.locator("tbody tr")
        await expect(rows).to_have_count(1)
        await expect(page.get_by_text("It is read again by itself.")).to_be_visible()
        ask = an_ask(4, class_name="whole")
        await (await AttendedStart(service, ask).open()).until("waiting")
        await page.clock.fast_forward(11_000)
        await expect(rows).to_have_count(2)
        await page.get_by_text("Take out…").first.click()
        for server in (5, 6):
            ask = an_ask(server, class_name="whole")
            await (await AttendedStart(service, ask).open()).until("waiting")
        await page.clock.fast_forward(11_000)
        await expect(page.get_by_text("while you work in it")).to_be_visible()
        await expect(rows).to_have_count(2)
        await page.get_by_text("Take out…").first.click()
        await page.mouse.move(1, 1)
        await page.get_by_role("searchbox").focus()
        await page.clock.fast_forward(11_000)
        await expect(rows).to_have_count(4)


async def test_a_workload_s_page_survives_that_nobody_is_there(
    service: Service,
) -> None:
    """It does not become the proxy's page; buttons are asked for until they have come."""
    path = (await workload_pages(service))["workload-waiting"]
    failed: list[Route] = []

    async def fail(route: Route) -> None:
        failed.append(route)
        if len(failed) == 1:
            await route.fulfill(status=502, body="the proxy's own page")
        else:
            await route.abort()

    async with a_page(who="alice") as page:
        for what in ("**/timeline?*", "**/health"):
            await page.route(what, lambda route: route.fulfill(status=404, body="no"))
        await page.goto(service.url + path)
        notice = page.locator(".fleet-Timeline-notice")
        await expect(notice).to_contain_text("does not answer")
        await page.unroute_all()
        await expect(page.locator(".fleet-Timeline-heard")).to_contain_text("live")
        await expect(notice).to_have_count(0)
        await expect(page.locator("summary", has_text="Leave the line")).to_be_visible()
        await page.route(service.url + path, fail)
        async with page.expect_event("requestfailed"):
            await service.json("internal/servers/1-3/leave", method="POST")
        over = page.locator("#fleet-timeline").get_by_text("You left the line.")
        await expect(over.first).to_be_visible()
        await expect(page.get_by_role("link", name="Start again")).to_have_count(0)
        await page.unroute(service.url + path)
        await expect(page.get_by_role("link", name="Start again")).to_be_visible()
    assert failed


async def test_what_cannot_be_undone_asks_first(service: Service) -> None:
    """By keyboard: closed, opened with its consequence, done, and told."""
    async with a_page(script=False) as page:
        await page.goto(service.url + "machines/gpu-01")
        button = page.get_by_role("button", name="Declare it lost: gpu-01")
        await expect(button).not_to_be_visible()
        summary = page.locator("summary", has_text="Declare it lost…")
        await summary.focus()
        await page.keyboard.press("Enter")
        await expect(button).to_be_visible()
        await expect(
            page.get_by_text("Do this only if nothing runs there")
        ).to_be_visible()
        await page.screenshot(path=ARTEFACTS / "fleet-machine-confirm.png")
        await page.keyboard.press("Tab")
        why = page.get_by_label("Why, for the audit log")
        await expect(why.locator("visible=true")).to_be_focused()
        await page.keyboard.type("its disk died")
        await page.keyboard.press("Tab")
        await expect(button).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_contain_text("Declared lost")
        await page.goto(service.url + "audit")
        await expect(page.locator("tbody")).to_contain_text("saying: its disk died")


async def test_the_pages_say_where_one_is(service: Service) -> None:
    """One current tab, one heading, and for a user only what is theirs."""
    async with a_page() as page:
        for name, path in PAGES.items():
            if name == "nothing-there":
                continue
            await page.goto(service.url + path)
            await expect(page.locator("h1")).to_have_count(1)
            current = page.locator("nav [aria-current=page]")
            await expect(current).to_have_count(
                0 if name in {"machine", "why-profile"} else 1
            )
    async with a_page(who="alice") as page:
        await page.goto(service.url)
        tabs = page.locator("header nav a")
        assert await tabs.all_inner_texts() == ["Servers", "Machines", "Usage"]
        await page.goto(service.url + "machines/gpu-01")
        assert await violations(page) == []
        await expect(page.get_by_text("Declare it lost")).to_have_count(0)
        await page.screenshot(
            path=ARTEFACTS / "fleet-machine-owner.png", full_page=True
        )
