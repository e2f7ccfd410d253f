"""The Hub's pages in a real browser: they move by themselves, and lead on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import held_agent
import pytest
from fleet import Fleet
from fleet_parts import NEEDS_HUB
from lab_browser import hub_page, photograph, script_runs
from playwright.sync_api import Page, expect


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(400),
]
ALL_IS_LOADED = """
window.require && require.defined("utils") && require.defined("not_running")
    && Object.keys(require.s.contexts._.registry).length === 0
"""
COMES_BACK = """
setTimeout(() => dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true })))
"""
"""What a browser does that kept a page, and shows it again."""
ALL, ONE = {"profile": "all"}, {"profile": "one"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Fleet]:
    """A fleet whose machine can be held while it prepares a start."""
    with Fleet(folder=tmp_path, queue_hold=4) as started:
        started.token_of("ada")
        box = started.add_machine(
            "box", owner="ada", start=False, prepare_seconds=0.5, pause_at="preparing"
        )
        box.program = (held_agent.__file__, str(go_on(started)))
        go_on(started).touch()
        started.start_agent("box")
        started.wait_for_agent("box")
        yield started


def go_on(running: Fleet) -> Path:
    """Return the file for which each start waits while it is prepared."""
    return running.folder / "go-on"


@pytest.fixture
def page(running: Fleet, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Ada's browser, logged in; a script's fault fails the test."""
    with hub_page(f"hub-{request.node.name}", running.url, "ada") as opened:
        yield opened


TELLS = """
window.Notification = class {
  static get permission() { return localStorage.answer ?? "default"; }
  static async requestPermission() { return localStorage.answer = "granted"; }
  constructor(title, { body } = {}) {
    if (Notification.permission === "granted") localStorage.told = `${title} ${body}`;
  }
};
"""
"""A browser whose user allows notifications, and that keeps what it was to show."""


def ask_to_be_told(page: Page) -> None:
    """Press the button; nobody was asked for permission before."""
    button = page.get_by_role("button", name="Tell me when it is ready")
    expect(button).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("Notification.permission") == "default"
    button.click()
    expect(page.locator(".fleet-Timeline-notice")).to_contain_text("stays open")
    page.reload()
    expect(button).to_have_attribute("aria-pressed", "true")


def row(page: Page, phase: str, status: str) -> None:
    """Wait until a phase's row has this status."""
    expect(page.locator(f".fleet-Timeline-step[data-phase={phase}]")).to_have_attribute(
        "data-status", status
    )


def test_a_start_moves_through_its_phases_to_the_server(
    running: Fleet, page: Page
) -> None:
    """Five phases, with progress while it is prepared; then the server opens."""
    go_on(running).unlink()
    page.add_init_script(TELLS)
    page.goto(f"{running.url}/hub/spawn")
    photograph(page, "hub-spawn-form")
    page.check("input[value=one]")
    page.click("button[type=submit]")
    row(page, "starting", "now")
    expect(page.locator(".fleet-Timeline-step[data-phase=placed]")).to_contain_text(
        "box"
    )
    expect(page.locator("[data-phase=starting] .fleet-Timeline-facts")).to_contain_text(
        " of "
    )
    row(page, "ready", "todo")
    ask_to_be_told(page)
    photograph(page, "hub-pending")
    go_on(running).touch()
    page.wait_for_url(re.compile(r"/user/ada/(?!.*spawn)"))
    page.wait_for_function("localStorage.told?.startsWith('Your server is ready. ')")


def test_a_parked_page_leads_to_the_server_when_its_turn_comes(
    running: Fleet, page: Page
) -> None:
    """Nobody has to press anything, nor to stay; a stream that went dead is noticed.

    In the background it stays where it is until it could tell what it was asked for.
    """
    page.add_init_script(TELLS)
    page.clock.install()
    running.start_server("ada", ALL)
    page.goto(f"{running.url}/hub/spawn/ada/lab?choice=all")
    expect(page.locator("input[value=all]")).to_be_checked()
    page.click("button[type=submit]")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Your place in the line is kept"
    )
    row(page, "waiting", "now")
    photograph(page, "hub-parked")
    # A proxy keeps a stream open that nothing comes through any more.
    page.route("**/api/timeline*", lambda route: None)
    page.reload()
    row(page, "waiting", "now")
    # What the page still loads would be given up as too slow.
    page.wait_for_function(ALL_IS_LOADED)
    # Nor does the Hub say anything to the first question.
    page.route("**/hub/api/", lambda route: None, times=1)
    with page.expect_request("**/hub/api/"):
        page.clock.fast_forward(50_000)
    with page.expect_navigation():
        page.clock.fast_forward(15_000)
    page.unroute("**/api/timeline*")
    page.reload()
    ask_to_be_told(page)
    expect(page).to_have_title(
        re.compile("^You are next.*Your place in the line is kept$")
    )
    page.evaluate(SEEN, "hidden")
    running.stop_server("ada")
    page.wait_for_function("localStorage.told")
    told = page.evaluate("localStorage.told")
    assert told.startswith("Your server is ready. Admission timeline of server “lab”")
    expect(page).to_have_title(re.compile("^Ready on box"))
    page.evaluate(SEEN, "visible")
    page.wait_for_url(re.compile(r"/user/ada/lab/"))


SEEN = """state => {
  Object.defineProperty(document, "visibilityState", {value: state, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""
LATE_PAGES = """
import asyncio
from fleet_hub.spawner import FleetSpawner

_view = FleetSpawner.fleet_view

async def _late(spawner):
    while spawner.pending:
        await asyncio.sleep(0.01)
    return await _view(spawner)

FleetSpawner.fleet_view = _late
"""
"""A Hub that takes so long to draw a pending start that it is over before."""


def test_a_page_that_is_made_a_moment_too_late_leads_to_the_server(
    running: Fleet, page: Page
) -> None:
    """It shows a start that is over already, so it hears no news of it."""
    running.more_config = LATE_PAGES
    running.end_hub()
    running.start_hub()
    running.wait_for_agent("box")
    go_on(running).unlink()
    page.goto(f"{running.url}/hub/spawn/ada/lab?choice=one")
    with page.expect_request("**/hub/spawn-pending/**"):
        page.click("button[type=submit]", no_wait_after=True)
    go_on(running).touch()
    page.wait_for_url(re.compile(r"/user/ada/lab/"))


def test_leaving_the_line_needs_a_second_thought_and_names_the_right_server(
    running: Fleet, page: Page
) -> None:
    """Staying changes nothing; ending it ends that server alone.

    Where nobody hears of it, it can be said again; who comes back sees what is now.
    """
    running.queue_hold = 600
    running.end_hub()
    running.start_hub()
    running.start_server("ada", ALL)
    page.goto(f"{running.url}/hub/spawn/ada/lab?choice=all")
    page.click("button[type=submit]")
    row(page, "waiting", "now")
    script_runs(page)
    page.click("#fleet-leave")
    page.click("#fleet-stay")
    expect(page.locator("#fleet-leave-sure")).to_be_hidden()
    with page.expect_navigation():
        page.evaluate(COMES_BACK)
    row(page, "waiting", "now")
    script_runs(page)
    page.click("#fleet-leave")
    page.route("**/servers/lab", lambda route: route.abort(), times=1)
    page.click("#fleet-leave-now")
    expect(page.locator(".fleet-Timeline-notice")).to_contain_text("does not answer")
    page.click("#fleet-leave-now")
    expect(page.get_by_role("heading", level=1)).to_have_text("Server not running")
    assert running.status("ada", "lab")["state"] == "stopped"
    assert running.server("ada")["ready"]  # type: ignore[index]


def test_a_pending_page_survives_a_kill_of_the_hub(running: Fleet, page: Page) -> None:
    """It waits however long the Hub is away, follows the controller, and leads on.

    A page that is opened after the kill shows the same start, and how to give it up.
    """
    go_on(running).unlink()
    page.clock.install()
    page.goto(f"{running.url}/hub/spawn")
    page.check("input[value=one]")
    page.click("button[type=submit]")
    row(page, "starting", "now")
    running.kill_hub()
    with page.expect_request("**/hub/api/"):
        page.clock.fast_forward(60_000)
    row(page, "starting", "now")
    expect(page.locator(".fleet-Timeline-notice")).to_contain_text("does not answer")
    running.start_hub()
    browser = page.context.browser
    assert browser is not None
    elsewhere = browser.new_context(storage_state=page.context.storage_state())
    later = elsewhere.new_page()
    later.goto(f"{running.url}/hub/spawn-pending/ada")
    row(later, "starting", "now")
    expect(later.get_by_role("link", name="Cancel the start…")).to_be_visible()
    elsewhere.close()
    go_on(running).touch()
    page.wait_for_url(re.compile(r"/user/ada/(?!.*spawn)"), timeout=180_000)


def test_the_form_tells_when_a_profile_gets_busy(running: Fleet, page: Page) -> None:
    """An open form does not lie: it looks again by itself."""
    page.goto(f"{running.url}/hub/spawn/ada/lab")
    card = page.locator("[data-fleet-card=all]")
    expect(card).to_contain_text("Can start now")
    running.start_server("ada", ALL)
    expect(card).to_contain_text("Waits in line")
    both = page.locator("[data-fleet-card=both]")
    expect(both.locator(".fleet-state")).to_contain_text("Waits in line")
    both.locator("select").select_option("whole")
    expect(both.locator("input")).to_be_checked()
    expect(card.locator("input")).to_be_enabled()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_cut_off_on_a_narrow_screen(
    running: Fleet, page: Page, theme: str
) -> None:
    """No page scrolls sideways at 380 pixels, in either theme."""
    go_on(running).unlink()
    page.set_viewport_size({"width": 380, "height": 800})
    page.goto(f"{running.url}/hub/spawn")
    page.evaluate(f"document.documentElement.dataset.bsTheme = '{theme}'")
    photograph(page, f"hub-form-narrow-{theme}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    page.check("input[value=one]")
    page.click("button[type=submit]")
    row(page, "starting", "now")
    page.evaluate(f"document.documentElement.dataset.bsTheme = '{theme}'")
    photograph(page, f"hub-pending-narrow-{theme}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
