"""A narrow window of a real browser on a page of the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from shutil import which

from fleet_service import Service
from playwright.async_api import Page, async_playwright, expect


NARROW = {"width": 380, "height": 760}
PATIENCE = 60_000
"""Milliseconds; a busy machine takes its time."""


@asynccontextmanager
async def a_page(
    service: Service, *, script: bool = True, who: str = "alice"
) -> AsyncIterator[Page]:
    """Open a narrow browser window of somebody's; its console must stay silent."""
    complaints: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=which("chromium"), args=["--no-sandbox"]
        )
        context = await browser.new_context(
            viewport=NARROW,
            java_script_enabled=script,
            extra_http_headers={"Authorization": f"token hub-token-of-{who}"},
        )
        page = await context.new_page()
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        note: Callable[[object], None] = lambda what: complaints.append(str(what))  # noqa: E731
        page.on("pageerror", note)
        yield page
        await browser.close()
    assert complaints == []
