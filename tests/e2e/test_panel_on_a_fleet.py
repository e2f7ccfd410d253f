"""The panel in a notebook of a whole fleet: it comes back after whatever was killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet import Fleet
from lab_browser import browser_page, photograph
from lab_server import require_front_end
from native_fleet import (
    NATIVE_PATIENCE,
    NEEDS_NATIVE,
    add_native_machine,
    keep_environments,
)
from playwright.sync_api import Page, expect


pytestmark = [
    *NEEDS_NATIVE,
    pytest.mark.browser,
    pytest.mark.timeout(2 * NATIVE_PATIENCE),
]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Ada's machine runs her notebook."""
    require_front_end()
    with Fleet(folder=tmp_path, catalog=None) as running:
        machine = add_native_machine(running, owner="ada")
        running.ask("ada", {"profile": "cpu-small"})
        running.wait_ready("ada", patience=NATIVE_PATIENCE)
        keep_environments(machine)
        yield running


@pytest.fixture
def page(fleet: Fleet) -> Iterator[Page]:
    """Ada's browser with JupyterLab, and the panel open in it."""
    with browser_page("panel-on-a-fleet") as opened:
        opened.goto(f"{fleet.url}/hub/login?next=%2Fuser%2Fada%2Flab")
        opened.fill("#username_input", "ada")
        opened.fill("#password_input", "ada")
        opened.click("#login_submit")
        # Not by its text, which is news for a minute: a page may take longer to load.
        opened.locator(".jp-FleetStatus-button").click()
        yield opened


def test_the_panel_is_back_after_hub_proxy_and_controller_were_killed(
    fleet: Fleet, page: Page
) -> None:
    """Without a reload: the last data stay meanwhile, and news arrives again."""
    heard = page.locator(".fleet-Timeline-heard")
    steps = page.locator(".fleet-Timeline-step")
    expect(heard).to_contain_text("live")

    # The next Hub ends the proxy of the one before, and starts another.
    fleet.kill_hub()
    expect(heard).to_contain_text("trying again")
    expect(steps).to_have_count(5)
    photograph(page, "panel-on-a-fleet-away")
    fleet.start_hub()
    expect(heard).to_contain_text("live")

    # By itself as well: its successor is there too soon for more than a word of it.
    fleet.kill_controller()
    fleet.wait_for_controller()
    fleet.wait_for_agent("box")
    fleet.kill_agent()
    since = page.get_by_role("list", name="Since then")
    expect(since).to_contain_text("box")
    fleet.start_agent()
    expect(since).to_contain_text("box answers again")
    expect(steps).to_have_count(5)

    # Notebook 7 has it from the same extension, through the same proxy.
    page.goto(f"{fleet.url}/user/ada/tree")
    page.locator("#main-panel").wait_for()
    page.keyboard.press("Control+Alt+t")
    expect(heard).to_contain_text("live")
    expect(since).to_contain_text("box answers again")
