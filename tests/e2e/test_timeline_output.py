"""The timeline as a cell's output in a real JupyterLab, saved, and looked at elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_browser import Lab, browser_page, photograph
from lab_server import lab_environment, lab_server, require_front_end
from playwright.sync_api import Page, expect
from timeline_peer import TimelinePeer, an_admission


pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

TOKEN = "timeline-token-of-ada"
NOTEBOOK = "admission.ipynb"
TOOLBAR = {
    "@jupyterlab/notebook-extension:panel": {
        "toolbar": [{"name": "admission-timeline", "disabled": False}]
    }
}
"""What the documentation tells a site to write."""
CELLS = ("%load_ext fleet_lab\n%admission", "import fleet_lab\nfleet_lab.timeline()")


@pytest.fixture
def peer() -> Iterator[TimelinePeer]:
    """A controller that tells one timeline."""
    with TimelinePeer(an_admission().document(), token=TOKEN) as peer:
        yield peer


@pytest.fixture
def page() -> Iterator[Page]:
    """A browser; a script's fault fails the test."""
    faults: list[str] = []
    with browser_page("timeline-output") as opened:
        opened.on("pageerror", lambda error: faults.append(error.stack or str(error)))
        yield opened
    assert not [fault for fault in faults if "jupyterhub-fleet-lab" in fault]


def write_notebook(path: Path) -> None:
    """Write a notebook with one cell per line of ``CELLS``, not run yet."""
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        for number, source in enumerate(CELLS)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path.write_text(
        json.dumps(
            {
                "nbformat": 4,
                "nbformat_minor": 5,
                "metadata": {"kernelspec": kernel},
                "cells": cells,
            }
        )
    )


def test_a_cell_shows_the_panel_s_rows_and_saves_a_plain_table(
    tmp_path: Path, peer: TimelinePeer, page: Page
) -> None:
    """JupyterLab draws five frozen rows; the file holds a table that needs no script."""
    require_front_end()
    python = lab_environment(tmp_path)
    settings = python.parents[1] / "share" / "jupyter" / "lab" / "settings"
    settings.mkdir(parents=True)
    (settings / "overrides.json").write_text(json.dumps(TOOLBAR))
    home = tmp_path / "home"
    home.mkdir()
    write_notebook(home / NOTEBOOK)
    started_by_hub = {
        "JUPYTERHUB_FLEET_URL": peer.url,
        "JUPYTERHUB_FLEET_TIMELINE_TOKEN": TOKEN,
        "JUPYTERHUB_USER": "ada",
        "JUPYTERHUB_SERVER_NAME": "gpu",
    }
    with lab_server(python, home, started_by_hub) as address:
        url, _, token = address.partition("?token=")
        # The browser is known from here on, by its cookie.  No page is loaded for that: a
        # style sheet whose loading is broken off may fail for the next page as well.
        assert page.request.get(f"{url}?token={token}").ok
        lab = Lab(page=page, url=url.removesuffix("/lab").removesuffix("/lab/"))
        lab.open_notebook(NOTEBOOK)
        lab.run_all_cells()
        outputs = page.locator(".jp-FleetOutput")
        expect(outputs).to_have_count(len(CELLS))
        expect(outputs.first.locator(".fleet-Timeline-step")).to_have_count(5)
        expect(outputs.first.locator(".fleet-Timeline-heard")).to_contain_text("As of")
        # Frozen: there is nothing that a screen reader would wait for.
        expect(outputs.first.get_by_role("status")).to_have_count(0)
        outputs.first.locator("summary").nth(1).click()
        expect(outputs.first).to_contain_text("held by grace (GPU large)")
        photograph(page, "timeline-output-lab")
        dark = "JupyterLab Dark"
        page.evaluate(
            "theme => jupyterapp.commands.execute('apputils:change-theme', {theme})",
            dark,
        )
        expect(page.locator("body")).to_have_attribute("data-jp-theme-name", dark)
        expect(page.locator("#jupyterlab-splash")).to_have_count(0)
        photograph(page, "timeline-output-lab-dark")
        page.locator("[data-jp-item-name=admission-timeline] *").first.click()
        expect(
            page.locator("#jp-fleet-timeline .fleet-Timeline-headline")
        ).to_be_visible()
        lab.save()
    saved = json.loads((home / NOTEBOOK).read_text())
    html = "".join(saved["cells"][0]["outputs"][0]["data"]["text/html"])
    page.set_content(f"<!doctype html><title>elsewhere</title><main>{html}</main>")
    expect(page.get_by_role("table")).to_contain_text("held by grace (GPU large)")
    expect(page.get_by_role("rowheader")).to_have_count(5)
    photograph(page, "timeline-output-elsewhere")
