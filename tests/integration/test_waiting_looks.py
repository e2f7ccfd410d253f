"""What people see while one waits for what another holds, and what an admin's edits do.

Pictures of each page in each theme are kept in ``artefacts``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from fleet_looks import LOOKS, a_page, faults
from fleet_service import Service, a_service
from page_visits import add_people
from playwright.async_api import Page, expect
from shared_box import a_shared_box, alice_holds, waits


pytestmark = [pytest.mark.asyncio, pytest.mark.browser, pytest.mark.timeout(600)]

LONG: Final = "An-environment-with-a-name-that-nobody-would-want-to-break-anywhere"
CATALOG: Final = f"""
classes:
  - {{name: small, title: Small, cpu: 1, memory: 1G, limit: 8h}}
  - {{name: whole, title: The whole of {LONG}, cpu: 3, memory: 1G, limit: 2h, idle_limit: 30m}}
  - {{name: huge, title: Huge, cpu: 3000, memory: 1G}}
runtimes:
  - {{name: python, title: Python, accelerators: [cpu], ref: pretended}}
profiles:
  - {{name: jupyter, title: "JupyterLab, {LONG}", description: "For {LONG}.",
      classes: [small, whole, huge], runtimes: [python], idle_limit: 1h}}
  - {{name: private, title: Private, classes: [small], runtimes: [python], audience: {{users: [carol]}}}}
"""
BROKEN: Final = CATALOG.replace("cpu: 1,", "cpu: one,").replace("huge,", "hugest,", 1)


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service that knows alice, bob and an admin."""
    async with a_service(tmp_path) as running:
        add_people(running.hub)
        yield running


async def visited(page: Page, service: Service, path: str) -> None:
    """Show a page, drawn by its script where it has one."""
    await page.goto(service.url + path)
    if path.startswith("workloads/") and not path.endswith("/why"):
        await expect(page.locator(".fleet-Timeline-heard")).to_be_attached()


async def everywhere(service: Service, pages: dict[str, tuple[str, str]]) -> list[str]:
    """Return what is wrong with each page, of a user and a path, in any look."""
    wrong = []
    people = sorted({who for who, _ in pages.values()})
    for (look, how), reader in product(LOOKS.items(), people):
        async with a_page(who=reader, **how) as page:
            for name, (who, path) in pages.items():
                if who == reader:
                    await visited(page, service, path)
                    wrong += await faults(page, name, look)
    return wrong


async def test_a_wait_can_be_read_and_ended_by_everybody_in_every_look(
    service: Service,
) -> None:
    """With names that are long, before and after the holder was asked for it."""
    await a_shared_box(service, CATALOG)
    mine, wanted = await alice_holds(service), await waits(service)
    wrong = await everywhere(
        service,
        {
            "wait": ("bob", f"workloads/{wanted}"),
            "wait-why": ("bob", f"workloads/{wanted}/why"),
            "why-never": ("bob", "why?profile=jupyter&class=huge"),
            "why-forbidden": ("bob", "why?profile=private"),
            "wait-line": ("root", "line"),
            "wait-holds": ("root", "holds"),
            "wait-profiles": ("root", "profiles"),
        },
    )
    async with a_page(who="bob") as page:
        await visited(page, service, f"workloads/{wanted}")
        # By keyboard alone.
        ask = page.get_by_role("button", name="Ask to release")
        await ask.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("body")).to_contain_text("asked for it at")
    wrong += await everywhere(
        service,
        {
            "wait-asked": ("bob", f"workloads/{wanted}"),
            "holder-asked": ("alice", f"workloads/{mine}"),
        },
    )
    assert wrong == []


async def test_an_edit_of_the_catalog_can_be_read_by_everybody_in_every_look(
    service: Service,
) -> None:
    """What it changed, and where the next one is wrong."""
    await a_shared_box(service, CATALOG)
    service.edit_catalog(BROKEN)
    async with a_page() as page:
        await page.goto(service.url + "catalog")
        while not await page.get_by_text("The file cannot be used").count():
            await page.reload()
    assert await everywhere(service, {"catalog-fault": ("root", "catalog")}) == []
