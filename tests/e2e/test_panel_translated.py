"""Panel, status bar, palette, notifications and cells in a language with brackets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pseudo_language
import pytest
from lab_browser import Lab
from lab_server import lab_environment, lab_server, require_front_end
from panel_lab import LIMITS, TOKEN
from playwright.sync_api import Page, expect
from timeline_peer import TimelinePeer, an_admission


pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

DATA = {"ada", "grace", "gpu-17", "gpu-large", "GPU large", "gpu", "GiB"}
LANGUAGE = {"@jupyterlab/translation-extension:plugin": {"locale": pseudo_language.TAG}}
NOTEBOOK = "admission.ipynb"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a language pack, which JupyterLab is set to."""
    require_front_end()
    python = lab_environment(tmp_path_factory.mktemp("environment"))
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    pseudo_language.install(packages)
    settings = python.parents[1] / "share" / "jupyter" / "lab" / "settings"
    settings.mkdir(parents=True)
    (settings / "overrides.json").write_text(json.dumps(LANGUAGE))
    return python


@pytest.fixture(scope="module")
def address(python: Path, peer: TimelinePeer, home: Path) -> Iterator[str]:
    """JupyterLab as the fleet starts it, with a kernel that speaks the language."""
    cell = {
        "cell_type": "code",
        "id": "cell-1",
        "metadata": {},
        "source": "%load_ext fleet_lab\n%admission",
        "outputs": [],
        "execution_count": None,
    }
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "cells": [cell]}
    text = json.dumps(notebook | {"metadata": {"kernelspec": kernel}})
    (home / NOTEBOOK).write_text(text)
    started_by_hub = {
        "JUPYTERHUB_FLEET_URL": peer.url,
        "JUPYTERHUB_FLEET_TIMELINE_TOKEN": TOKEN,
        "JUPYTERHUB_USER": "ada",
        "JUPYTERHUB_SERVER_NAME": "gpu",
        "LANGUAGE": pseudo_language.TAG,
    }
    with lab_server(python, home, started_by_hub) as address:
        yield address


def left_in(page: Page, where: str) -> list[str]:
    """Return the words of a part of the page that nobody could translate."""
    return pseudo_language.literals(page.evaluate(pseudo_language.TOLD, where), DATA)


def test_no_word_of_the_panel_is_left_in_english(
    page: Page, peer: TimelinePeer
) -> None:
    """Ready, with limits and earlier starts; then a machine that went silent."""
    story = an_admission()
    ends_at = story.time(4_000 + 90)
    peer.say(
        story.document(limits={**LIMITS, "metal_reserved": True, "ends_at": ends_at})
    )
    status = page.locator(".jp-FleetStatus-button")
    expect(status).to_contain_text("⟦")
    status.click()
    panel = page.locator("#jp-fleet-timeline")
    expect(panel.locator(".fleet-Timeline-heard")).to_contain_text("⟦")
    expect(panel.locator(".fleet-Timeline-list")).to_contain_text("⟦")
    assert left_in(page, "#jp-fleet-timeline, .jp-FleetStatus") == []
    toast = page.locator(".Toastify__toast").first
    expect(toast).to_contain_text("⟦")
    assert left_in(page, ".Toastify__toast-body .jp-toast-message") == []
    story = an_admission().then(3_000, "unknown", "silent", machine="gpu-17")
    peer.say(story.document())
    expect(panel.locator("[data-kind=silent]")).to_be_visible()
    assert left_in(page, "#jp-fleet-timeline, .jp-FleetStatus") == []
    page.screenshot(path="artefacts/panel-translated.png")


def test_the_palette_has_the_commands_in_the_language(page: Page) -> None:
    """Whoever looks for them looks in their own language."""
    expect(page.locator(".jp-FleetStatus-button")).to_contain_text("⟦")
    labels = page.evaluate(
        """() => jupyterapp.commands.listCommands()
            .filter(id => id.startsWith('jupyterhub-fleet-lab:'))
            .flatMap(id => [jupyterapp.commands.label(id), jupyterapp.commands.caption(id)])"""
    )
    assert len(labels) == 12
    assert pseudo_language.literals(labels) == []


def test_no_word_of_a_cell_is_left_in_english(
    page: Page, address: str, home: Path, peer: TimelinePeer
) -> None:
    """Neither in JupyterLab's rows nor in the table and the text that are saved."""
    peer.say(an_admission().document(limits=LIMITS))
    url = address.partition("?")[0].removesuffix("/lab").removesuffix("/lab/")
    lab = Lab(page=page, url=url)
    lab.open_notebook(NOTEBOOK)
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    output = page.locator(".jp-FleetOutput")
    expect(output.locator(".fleet-Timeline-step")).to_have_count(5)
    assert left_in(page, ".jp-FleetOutput") == []
    lab.save()
    data = json.loads((home / NOTEBOOK).read_text())["cells"][0]["outputs"][0]["data"]
    html, text = "".join(data["text/html"]), "".join(data["text/plain"])
    assert pseudo_language.literals(pseudo_language.texts_of(html), DATA) == []
    assert pseudo_language.literals(text.splitlines(), DATA) == []
