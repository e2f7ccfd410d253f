"""The page of one workload in a real browser: it follows, recovers, and leads on."""

from __future__ import annotations

from pathlib import Path

import pytest
from attended_start import AttendedStart
from fleet_controller import an_ask
from fleet_service import Service, a_service
from narrow_page import a_page
from playwright.async_api import Page, expect
from scripted_agent import ScriptedAgent

from fleet_contracts.protocol import AgentEvent, Launch


pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.browser,
    pytest.mark.timeout(300),
]


async def a_preparing_server(service: Service, agent: ScriptedAgent) -> Launch:
    """Let alice's first server hold the whole machine, and be prepared."""
    start = await AttendedStart(service, an_ask(1, class_name="whole")).open()
    await start.until("placed")
    launch = await agent.launched()
    await agent.report(launch, AgentEvent.ACCEPTED)
    await start.until("preparing")
    return launch


async def state_becomes(page: Page, state: str) -> None:
    """Wait until the page shows *state*, without a reload by us."""
    await page.wait_for_selector(f"#live[data-state={state}]")


async def test_the_page_follows_the_line_and_leads_to_the_server(
    tmp_path: Path,
) -> None:
    """Waiting, placed, ready: patched in place, and on to the server at the end."""
    async with a_service(tmp_path) as service, a_page(service) as page:
        service.hub.add_user("alice")
        agent = ScriptedAgent(service, await service.enrol())
        agent.is_automatic = False
        await agent.connect()
        first = await a_preparing_server(service, agent)
        second = await AttendedStart(service, an_ask(2, class_name="whole")).open()
        await second.until("waiting")
        workload = (await service.status("1-2"))["workload"]
        await page.goto(f"{service.url}workloads/{workload}")
        status = page.get_by_role("status")
        await expect(status).to_contain_text("You are next")
        details = page.locator("details", has_text="Details")
        await details.locator("summary").click()
        assert await page.evaluate("document.documentElement.scrollWidth") == 380

        await agent.report(first, AgentEvent.FAILED)
        await state_becomes(page, "placed")
        assert await details.get_attribute("open") is not None, "kept open"
        await expect(status).to_contain_text("box")
        launch = await agent.launched(2)
        await agent.report(launch, AgentEvent.ACCEPTED)
        await state_becomes(page, "preparing")
        step = page.locator('li[aria-current="step"]')
        await expect(step).to_contain_text("Starting the server")
        await agent.report(launch, AgentEvent.PREPARED)
        await agent.report(launch, AgentEvent.SERVING, url="http://127.0.0.1:9/x/")
        await page.wait_for_url("**/user/alice/server-2/**")


async def test_the_page_recovers_when_the_controller_was_killed(
    tmp_path: Path,
) -> None:
    """It says that it has lost touch, finds it again, and goes on."""
    async with a_service(tmp_path) as service, a_page(service) as page:
        service.hub.add_user("alice")
        agent = ScriptedAgent(service, await service.enrol())
        agent.is_automatic = False
        await agent.connect()
        launch = await a_preparing_server(service, agent)
        workload = (await service.status())["workload"]
        await page.goto(f"{service.url}workloads/{workload}")
        await state_becomes(page, "preparing")
        await service.kill_child()
        await agent.gone()
        await agent.connect()
        await agent.report(launch, AgentEvent.PREPARED)
        await state_becomes(page, "starting")
        await expect(page.locator(".fleet-Timeline-notice")).to_have_count(0)


async def test_the_line_is_left_without_a_script(tmp_path: Path) -> None:
    """A confirmation that says what is lost, a form, and the page afterwards."""
    async with a_service(tmp_path) as service, a_page(service, script=False) as page:
        service.hub.add_user("alice")
        start = await AttendedStart(service, an_ask()).open()
        await start.until("waiting")
        workload = (await service.status())["workload"]
        await page.goto(f"{service.url}workloads/{workload}")
        button = page.get_by_role("button", name="Leave the line")
        assert not await button.is_visible()
        await page.get_by_text("Leave the line…").click()
        await expect(page.get_by_text("The place is lost")).to_be_visible()
        await button.click()
        await expect(page.get_by_role("link", name="Start again")).to_be_visible()
        assert (await service.status())["state"] == "stopped"
