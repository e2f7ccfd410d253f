"""The controller's pages in a language in which every translated text is bracketed."""

from __future__ import annotations

import re
from pathlib import Path

import pseudo_language
import pytest
from fleet_looks import PAGES, a_full_service, a_page, workload_pages
from playwright.async_api import expect


pytestmark = [pytest.mark.asyncio, pytest.mark.browser, pytest.mark.timeout(300)]

NAMES = {
    # people, machines and what the catalog calls its profiles
    *("alice", "carol", "root", "gpu-01", "gpu-02", "mac-07", "server-2", "server-3"),
    *("GiB", "GPU", "cuda", "rocm"),
    *("JupyterLab", "jupyter", "Small", "small", "Whole", "whole", "JupyterHub"),
}
FOR_PROGRAMS = """[...document.querySelectorAll("[id], [name], [for]")].map(
    (each) => [each.id, each.getAttribute("name"), each.getAttribute("for")].join(" ")
).join("; ")"""
"""What a form sends, and what the server reads: the same in every language."""
MACHINES_OWN = {
    # what a machine says of itself is its own text
    *("AMD", "EPYC", "Debian 12", "x86_64", "MiB", "bubblewrap", "docker unusable"),
    *("docker", "its answer is not", "linux", "local", "native", "NVIDIA", "amd"),
    *("torch", "room", "partial", "H100", "MI300X", "hub"),
}


async def test_no_word_of_a_page_is_left_in_english(tmp_path: Path) -> None:
    """Servers, machines, the line, …: after its script, and with what it says aloud."""
    pack = pseudo_language.install(tmp_path / "pack")
    async with a_full_service(tmp_path, PYTHONPATH=str(pack)) as service:
        service.hub.add_user("bob")
        pages = PAGES | await workload_pages(service)
        left = {}
        for who, paths in {
            "root": pages,
            "alice": {"servers": "", "machines": "machines", "forbidden": "line"},
            "bob": {"servers": "", "machines": "machines", "usage": "usage"},
        }.items():
            async with a_page(who=who, headers=pseudo_language.HEADERS) as page:
                for name, path in paths.items():
                    await page.goto(service.url + path)
                    if name in {"workload-ready", "workload-waiting"}:
                        heard = page.locator(".fleet-Timeline-heard")
                        await expect(heard).to_contain_text("⟦")
                    html = page.locator("html")
                    await expect(html).to_have_attribute("lang", "ach-UG")
                    told = await page.evaluate(pseudo_language.TOLD, "body")
                    told.append(await page.title())
                    named = await page.evaluate(FOR_PROGRAMS)
                    assert "⟦" not in named, f"{name}: {named}"
                    words = pseudo_language.literals(told, NAMES | MACHINES_OWN | {who})
                    if words:
                        left[f"{who}: {name}"] = words
        assert left == {}, "\n".join(f"{name}: {words}" for name, words in left.items())


async def test_what_a_page_answers_to_a_deed_is_translated(tmp_path: Path) -> None:
    """Enrolling, draining, and a refusal; nothing of it stays behind in the log."""
    pack = pseudo_language.install(tmp_path / "pack")
    async with (
        a_full_service(tmp_path, PYTHONPATH=str(pack)) as service,
        a_page(headers=pseudo_language.HEADERS) as page,
    ):
        left = []
        await page.goto(service.url + "machines")
        for _ in range(2):
            await page.locator("#name").fill("far")
            await page.locator("form.enrol button").click()
            told = await page.evaluate(pseudo_language.TOLD, "main")
            left += pseudo_language.literals(told, {"far"})
            await page.goto(service.url + "machines")
        await page.locator("#name").fill("gpu-01")
        await page.locator("form.enrol button").click()
        await expect(page.locator("h1")).to_contain_text("⟦")
        left += pseudo_language.literals(
            await page.evaluate(pseudo_language.TOLD, "main")
        )
        await page.goto(service.url + "machines/gpu-01")
        await page.locator("form[action$=resume] button").click()
        said = page.get_by_role("status")
        left += pseudo_language.literals([await said.inner_text()])
        assert left == []
        audit = await service.json("internal/audit")
        assert "⟦" not in str(audit)
        assert re.search("let it take work again", str(audit))
