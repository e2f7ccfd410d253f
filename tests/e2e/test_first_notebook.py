"""From one command to a running cell, and back: what a newcomer does, in a browser.

All parts are the real ones: the command, Hub, proxy, controller, agent, an environment
that is built, the sandbox, JupyterLab in Chromium.  Pictures are kept in ``artefacts``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from accessibility import faults, hub_theme
from lab_browser import Lab, browser_page, photograph
from lab_server import require_front_end
from local_fleet import LocalFleet, left_over, local_fleet
from native_fleet import NATIVE_PATIENCE, NEEDS_NATIVE
from playwright.sync_api import Locator, Page, expect


NOTEBOOK = Path(__file__).with_name("several-cells.ipynb")
OUTPUTS = ("Python True", "9592", "168", "wrote 76127", "not root /home/jovyan")
PATIENCE_MS = NATIVE_PATIENCE * 1000

pytestmark = [
    *NEEDS_NATIVE,
    pytest.mark.browser,
    pytest.mark.timeout(2 * NATIVE_PATIENCE),
]


def test_a_newcomer_gets_from_one_command_to_a_running_cell(tmp_path: Path) -> None:
    """Log in with the printed code, start, watch, work in JupyterLab and a terminal.

    After stop and start the files are there, and Ctrl-C ends everything.
    """
    require_front_end()
    with local_fleet(tmp_path) as fleet:
        with browser_page("first-notebook") as page:
            log_in(page, fleet)
            start_from_the_form(page)
            watch_it_start(page, fleet)
            lab = Lab(page=page, url=f"{fleet.url}/user/{fleet.name}")
            upload_and_run_the_notebook(lab)
            work_in_a_terminal(lab)
            see_the_timeline(page, fleet)
            stop_from_the_home_page(page, fleet)
            start_again(page, fleet)
            find_the_files(lab)
        processes = fleet.processes()
        assert fleet.press_ctrl_c() == 0
        assert left_over(processes, fleet.data) == []


def log_in(page: Page, fleet: LocalFleet) -> None:
    """With the name and the single-use code that the command printed."""
    page.goto(fleet.url)
    page.get_by_label("Username").fill(fleet.name)
    page.get_by_label("One-time code").fill("WRONG-CODE")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".login_error")).to_contain_text("does not let you in")
    photograph(page, "first-notebook-0-wrong-code")
    page.get_by_label("One-time code").fill(fleet.code)
    photograph(page, "first-notebook-1-login")
    assert faults(page, "login-code", "#login-main", theme=hub_theme) == []
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/hub/spawn")


def start_from_the_form(page: Page) -> None:
    """Two profiles say what they hold and that they can start now; the first is taken."""
    profiles = page.get_by_role("group", name="Profile")
    expect(profiles.get_by_role("radio")).to_have_count(2)
    expect(profiles).to_contain_text("1 core, 1 GiB memory")
    expect(profiles.get_by_text("Can start now")).to_have_count(2)
    photograph(page, "first-notebook-2-form")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url(re.compile(r"/hub/spawn-pending/"))


def watch_it_start(page: Page, fleet: LocalFleet) -> None:
    """The phases move on while the environment is built, and JupyterLab opens."""
    timeline = page.get_by_role("region", name="Admission timeline")
    phases = timeline.locator(".fleet-Timeline-step")
    expect(phases).to_have_count(5)
    expect(phases.nth(2)).to_contain_text("Placed on")
    expect(phases.nth(2).get_by_role("img", name="done")).to_be_visible()
    expect(phases.nth(3).get_by_role("img", name="now")).to_be_visible()
    photograph(page, "first-notebook-3-starting")
    page.wait_for_url(f"**/user/{fleet.name}/lab**", timeout=PATIENCE_MS)
    expect(page.get_by_role("menuitem", name="File", exact=True)).to_be_visible()
    photograph(page, "first-notebook-4-lab")


def upload_and_run_the_notebook(lab: Lab) -> None:
    """A real notebook with several cells runs and is saved."""
    with lab.page.expect_file_chooser() as choosing:
        lab.page.get_by_role("button", name="Upload Files").first.click()
    choosing.value.set_files(NOTEBOOK)
    expect(listed(lab.page, NOTEBOOK.name)).to_be_visible()
    lab.open_notebook(NOTEBOOK.name)
    lab.run_all_cells()
    lab.expect_outputs(*OUTPUTS)
    lab.save()
    photograph(lab.page, "first-notebook-5-cells")


def work_in_a_terminal(lab: Lab) -> None:
    """A shell runs a command, sees the cell's file, and is not root."""
    terminal = lab.open_terminal()

    shown = terminal.run(
        "cat made-by-a-cell.txt; echo made-by-a-shell-$((6*7)) | tee by-a-shell.txt",
        until="made-by-a-shell-42",
    )

    assert "76127" in shown
    photograph(lab.page, "first-notebook-6-terminal")


def see_the_timeline(page: Page, fleet: LocalFleet) -> None:
    """JupyterLab's panel and its API tell it: asked, placed and where, prepared, ready."""
    page.get_by_role("button", name=re.compile("Admitted in|cpu-small")).click()
    panel = page.get_by_role("region", name="Admission timeline")
    expect(panel).to_contain_text("Placed on")
    photograph(page, "first-notebook-7-panel")

    answer = page.request.get(f"{fleet.url}/user/{fleet.name}/fleet/api/timeline")
    told = answer.json()

    assert told["standing"] == "live", told
    kinds = [event["kind"] for event in told["timeline"]["events"]]
    milestones = ["asked", "placed", "preparing", "progress", "starting", "ready"]
    assert sorted(milestones, key=kinds.index) == milestones
    assert told["timeline"]["user"] == fleet.name
    assert told["timeline"]["machine"]


def stop_from_the_home_page(page: Page, fleet: LocalFleet) -> None:
    """The Hub's own button stops the server."""
    page.goto(f"{fleet.url}/hub/home")
    page.get_by_role("button", name="Stop My Server").or_(
        page.get_by_role("link", name="Stop My Server")
    ).click()
    expect(page.locator("#start")).to_contain_text("Start My Server")
    photograph(page, "first-notebook-8-stopped")


def start_again(page: Page, fleet: LocalFleet) -> None:
    """The same way again; nothing has to be built any more."""
    page.goto(f"{fleet.url}/hub/spawn")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url(f"**/user/{fleet.name}/lab**", timeout=PATIENCE_MS)


def find_the_files(lab: Lab) -> None:
    """What was saved, written by a cell and by a shell, is all there."""
    lab.open_notebook(NOTEBOOK.name)
    lab.expect_outputs(*OUTPUTS)
    for name in (NOTEBOOK.name, "made-by-a-cell.txt", "by-a-shell.txt"):
        expect(listed(lab.page, name)).to_be_visible()
    photograph(lab.page, "first-notebook-9-again")


def listed(page: Page, name: str) -> Locator:
    """Return the entry of the file *name* in JupyterLab's file browser."""
    return page.get_by_role("listitem", name=re.compile(rf"^Name: {re.escape(name)}\b"))
