"""JupyterLab with the panel, once per module that wants it: starting one takes long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_browser import ARTEFACTS, chromium
from lab_server import lab_environment, lab_server, require_front_end
from panel_lab import LIMITS, TOKEN, PanelLab, lab_page
from playwright.sync_api import Browser, Page, expect, sync_playwright
from timeline_peer import TimelinePeer, an_admission


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds JupyterLab and the panel."""
    require_front_end()
    return lab_environment(tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def peer() -> Iterator[TimelinePeer]:
    """A controller that tells one timeline."""
    with TimelinePeer(an_admission().document(), token=TOKEN) as peer:
        yield peer


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the notebooks."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def address(python: Path, peer: TimelinePeer, home: Path) -> Iterator[str]:
    """JupyterLab as the fleet starts it."""
    with lab_server(python, home, _started_by_hub(peer)) as address:
        yield address


def _started_by_hub(peer: TimelinePeer) -> dict[str, str]:
    return {
        "JUPYTERHUB_FLEET_URL": peer.url,
        "JUPYTERHUB_FLEET_TIMELINE_TOKEN": TOKEN,
        "JUPYTERHUB_USER": "ada",
        "JUPYTERHUB_SERVER_NAME": "gpu",
    }


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    ARTEFACTS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(),
            args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page with JupyterLab; loading one for each test would take minutes."""
    with lab_page(browser, address) as page:
        yield page


@pytest.fixture
def lab(page: Page, peer: TimelinePeer) -> PanelLab:
    """JupyterLab whose status bar tells an admission; the panel is closed."""
    lab = PanelLab(page=page, peer=peer)
    lab.reset()
    peer.say(an_admission().document(limits=LIMITS))
    # The test before may have ended in a timeline that is over: it is followed no more.
    page.evaluate("jupyterapp.commands.execute('jupyterhub-fleet-lab:ask-again')")
    expect(lab.status).to_have_text("✓ gpu-large")
    return lab
