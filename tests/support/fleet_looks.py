"""The fleet's pages with something to see on each, in a browser, in every look."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from typing import Any, Final

import pytest
from accessibility import FAINT
from attended_start import AttendedStart
from fleet_builders import a_principal
from fleet_controller import an_ask
from fleet_service import Service, a_service
from patience import PATIENCE
from playwright.async_api import Page, async_playwright, expect
from rich_machine import a_rich_picture
from scripted_agent import ScriptedAgent

from fleet_contracts.protocol import CapabilitiesChanged


REPOSITORY = Path(__file__).parents[2]
AXE = REPOSITORY / "server_ext/node_modules/axe-core/axe.min.js"
ARTEFACTS = REPOSITORY / "artefacts"
WIDE, NARROW = {"width": 1100, "height": 800}, {"width": 320, "height": 700}
PAGES = {
    "servers": "",
    "machines": "machines",
    "machine": "machines/gpu-01",
    "line": "line",
    "decisions": "decisions",
    "holds": "holds",
    "profiles": "profiles",
    "usage": "usage",
    "catalog": "catalog",
    "audit": "audit",
    "nothing-there": "machines/nothing-there",
    "why-profile": "why?profile=jupyter",
}
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]}


@asynccontextmanager
async def a_full_service(folder: Path, **environment: str) -> AsyncIterator[Service]:
    """Run a service with something to see on every page."""
    async with a_service(folder, **environment) as running:
        running.hub.add_user("alice")
        running.hub.add_user("root", admin=True)
        for name in ("mac-07", "gpu-02"):
            await running.enrol(name, "carol")
        token = await running.enrol("gpu-01", "alice")
        agent, second = ScriptedAgent(running, token), ScriptedAgent(running, token)
        await agent.connect()
        await second.connect()
        await second.dismissed()
        for server in (1, 2):
            ask = an_ask(server, class_name="whole", principal=a_principal())
            start = await AttendedStart(running, ask).open()
            await start.until("ready" if server == 1 else "waiting")
        picture = a_rich_picture(datetime.now(UTC)).model_dump(
            mode="json", by_alias=True
        )
        await agent.say(CapabilitiesChanged(capabilities=picture))
        await running.json("internal/machines/mac-07/drain", method="POST")
        await running.json("internal/machines/gpu-02/revoke", method="POST")
        ask = an_ask(3, class_name="whole")
        await running.json("internal/machines/gpu-01/drain", method="POST")
        await (await AttendedStart(running, ask).open()).until("waiting")
        yield running
        await agent.hang_up()


@asynccontextmanager
async def a_page(
    *,
    scheme: Any = "light",
    viewport: Any = WIDE,
    who: str = "root",
    script: bool = True,
    **more: Any,
) -> AsyncIterator[Page]:
    """Open a browser window of one user; its console must stay silent.

    With *cookies* of a log-in it shows no token: a WebSocket cannot.
    """
    complaints: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=which("chromium"), args=["--no-sandbox"]
        )
        cookies = more.pop("cookies", None)
        shown = {} if cookies else {"Authorization": f"token hub-token-of-{who}"}
        context = await browser.new_context(
            viewport=viewport,
            color_scheme=scheme,
            java_script_enabled=script,
            extra_http_headers=shown | more.pop("headers", {}),
            **more,
        )
        await context.add_cookies(cookies or [])
        page = await context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        expect.set_options(timeout=PATIENCE * 1000)
        page.on("pageerror", lambda what: complaints.append(str(what)))
        yield page
        await browser.close()
    assert complaints == []


async def workload_pages(service: Service) -> dict[str, str]:
    """Return the pages of workloads: ready, waiting, and why it waits."""
    queue = await service.json("internal/queue")
    waiting = queue["waiting"][0]["workload"]
    async with a_page(who="root") as page:
        await page.goto(service.url)
        ready = page.locator("li:has(a.button) a.name").first
        path = await ready.get_attribute("href")
    assert path is not None
    return {
        "workload-ready": path.removeprefix("/services/fleet/"),
        "workload-waiting": f"workloads/{waiting}",
        "why-workload": f"workloads/{waiting}/why",
    }


async def violations(page: Page) -> list[str]:
    """Return what axe finds wrong."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: run make panel")
    await page.evaluate(AXE.read_text())
    found = await page.evaluate(
        "async rules => (await axe.run(document, rules)).violations", RULES
    )
    return [
        f"{violation['id']}: {node['html']} {node['failureSummary']}"
        for violation in found
        for node in violation["nodes"]
    ]


LOOKS: Final[dict[str, dict[str, Any]]] = {
    "light": {},
    "dark": {"scheme": "dark"},
    "forced-colours": {"forced_colors": "active"},
    "narrow": {"viewport": NARROW},
    "narrow-rtl": {"viewport": NARROW},
}


async def faults(page: Page, name: str, look: str) -> list[str]:
    """Return what is wrong with the page as it is shown; keep a picture of it."""
    if look.endswith("rtl"):
        await page.evaluate("document.documentElement.dir = 'rtl'")
    ARTEFACTS.mkdir(exist_ok=True)
    picture = ARTEFACTS / f"fleet-{name}-{look}.png"
    await page.screenshot(path=picture, full_page=True)
    wrong = [] if "narrow" in look else await violations(page)
    if look in {"light", "dark"}:
        wrong += await page.evaluate(FAINT, "body")
        regions = await page.locator("[role=status], [aria-live]").count()
        wrong += [f"it has {regions} live regions"] if regions > 1 else []
    width = await page.evaluate("document.documentElement.scrollWidth")
    limit = await page.evaluate("innerWidth")
    if width > limit:
        wrong.append(f"it is {width} wide of {limit}")
    return [f"{name} {look}: {each}" for each in wrong]
