"""The timeline in a real JupyterLab, in a real browser: looked at, typed at, torn at."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from lab_server import LAB_PACKAGE, lab_server, require_front_end
from panel_lab import LIMITS, TOKEN, PanelLab, lab_page
from playwright.sync_api import Browser, Route, expect
from timeline_peer import Story, TimelinePeer, an_admission


pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_the_panel_can_be_read_in_both_themes_and_narrow(
    lab: PanelLab, theme: str
) -> None:
    """Nothing is too pale, nothing is cut, and nothing has to be scrolled sideways."""
    lab.theme(theme)
    lab.open()
    for summary in lab.panel.locator("summary").all():
        summary.click()
    name = theme.rsplit(" ", 1)[1].lower()
    lab.photograph(f"{name}-250")

    assert lab.violations() == []

    for width in (230, 200):
        lab.narrow(width)
        lab.photograph(f"{name}-{width}")
        widths = lab.panel.evaluate("panel => [panel.scrollWidth, panel.clientWidth]")
        assert widths[0] <= widths[1]


def test_the_panel_is_small() -> None:
    """A browser fetches at most 30 kB of script, compressed, before it shows anything."""
    require_front_end()
    scripts = (LAB_PACKAGE / "labextension" / "static").glob("*.js")
    sizes = {file.name: len(gzip.compress(file.read_bytes(), 9)) for file in scripts}

    assert 0 < sum(sizes.values()) <= 30_000, sizes


def test_the_panel_reads_aloud_as_five_steps(lab: PanelLab) -> None:
    """What a screen reader is given: one region, one status, five items in order."""
    lab.open()
    region = lab.page.get_by_role("region", name="Admission timeline of server “gpu”")

    expect(region.get_by_role("status")).to_have_text(
        "Ready on gpu-17, admitted in 3 min 12 s."
    )
    expect(lab.panel.get_by_role("status")).to_have_count(1)
    items = region.get_by_role("list").first.get_by_role("listitem")
    expect(items).to_have_count(5)
    assert [" ".join(item.inner_text().split()) for item in items.all()][1:4] == [
        "✓ Waiting in line 2 min 40 s",
        "✓ Placed on gpu-17 4 s",
        "✓ Starting the server 28 s",
    ]
    expect(items.nth(1).get_by_role("img", name="done")).to_be_visible()


def test_everything_can_be_done_with_the_keyboard(lab: PanelLab) -> None:
    """No pointer is needed, and the focus can always be seen.

    Open the panel, open a step, copy for support.
    """
    lab.status.focus()
    lab.page.keyboard.press("Enter")
    # Rows of the test before would take the focus along when they go.
    lab.shown()
    expect(lab.panel).to_be_focused()
    for _ in range(2):
        lab.page.keyboard.press("Tab")
    waiting = lab.panel.locator("summary").nth(1)
    expect(waiting).to_be_focused()
    assert waiting.evaluate("step => getComputedStyle(step).outlineStyle") == "solid"
    lab.page.keyboard.press("Enter")
    expect(lab.panel.get_by_text("held by grace (GPU large)")).to_be_visible()
    lab.photograph("keyboard")
    copy = lab.panel.get_by_role("button", name="Copy as text")
    while not copy.evaluate("button => button === document.activeElement"):
        lab.page.keyboard.press("Tab")
    lab.page.keyboard.press("Enter")
    expect(lab.page.get_by_text("Copied.")).to_be_visible()

    copied = lab.page.evaluate("() => navigator.clipboard.readText()")

    assert "request   " in copied
    assert "grace" not in copied
    assert TOKEN not in copied


def test_what_can_be_copied_can_be_kept_as_a_file(
    lab: PanelLab, peer: TimelinePeer
) -> None:
    """The same text and the same document, named after the server and the moment."""
    lab.open()
    kept = {}
    for label in ("Download text", "Download JSON"):
        with lab.page.expect_download() as saving:
            lab.panel.get_by_role("button", name=label).click()
        name = saving.value.suggested_filename
        assert re.fullmatch(r"admission-gpu-\d{4}-\d\d-\d\dT\d{6}Z\.(txt|json)", name)
        kept[name[-4:]] = saving.value.path().read_text()
    assert "request   " in kept[".txt"]
    assert "grace" not in kept[".txt"]
    document, told = json.loads(kept["json"]), peer.told()
    assert document["workload"] == told["workload"]
    assert len(document["events"]) == len(told["events"])


def test_an_answer_that_takes_long_is_awaited_with_empty_rows(lab: PanelLab) -> None:
    """Not blank, not spoken, and gone once there is something to show."""
    held: list[Route] = []
    is_held = True

    def answer(route: Route) -> None:
        if is_held:
            held.append(route)
        else:
            route.continue_()

    lab.page.route("**/fleet/api/timeline*", answer)
    lab.page.reload()
    lab.page.locator("#jp-main-dock-panel").wait_for()
    lab.page.keyboard.press("Control+Alt+t")
    rows = lab.panel.locator(".fleet-Timeline-skeleton-row")
    expect(rows).to_have_count(5)
    expect(lab.panel.locator("[aria-busy=true]")).to_have_count(1)
    expect(lab.panel.get_by_role("button")).to_have_count(0)
    lab.photograph("loading")
    assert lab.violations() == []
    is_held = False
    for route in held:
        route.continue_()
    lab.shown()
    expect(rows).to_have_count(0)


def test_the_shortcut_and_the_menu_open_the_panel(lab: PanelLab) -> None:
    """The command is in the View menu, in the palette, and on a key."""
    lab.page.keyboard.press("Control+Alt+t")
    expect(lab.headline).to_be_visible()
    lab.page.get_by_role("menuitem", name="View", exact=True).click()
    entry = lab.page.get_by_role("menuitem", name=re.compile("^Admission Timeline"))
    expect(entry).to_be_visible()


def test_news_arrives_without_a_reload_and_disturbs_nobody(
    lab: PanelLab, peer: TimelinePeer
) -> None:
    """A machine that goes silent and returns: panel and one notification say so.

    The step that somebody had opened and focused stays so.
    """
    # JupyterLab's own first focus goes to what it opens at its start.
    expect(lab.page.locator(".jp-Launcher-body").first).to_be_visible()
    lab.open()
    story = an_admission()
    peer.say(story.document(profile_title="GPU of mine"))
    expect(lab.panel.get_by_text("Asked for GPU of mine")).to_be_visible()
    waiting = lab.panel.locator("summary").nth(1)
    waiting.click()
    expect(waiting).to_be_focused()
    story.then(3_000, "unknown", "silent", machine="gpu-17")
    peer.say(story.document(limits=LIMITS))

    expect(lab.headline).to_have_text(
        "gpu-17 does not answer; what runs there is kept."
    )
    expect(lab.status).to_have_text("‖ Machine silent")
    toast = lab.page.locator(".Toastify__toast").filter(has_text="gpu-17")
    expect(toast).to_contain_text("The machine gpu-17 does not answer the fleet.")
    lab.photograph("silent")
    assert lab.violations() == []

    # What is over goes away by itself, but not from under a pointer.
    toast.hover()
    story.then(3_060, "ready", "returned", machine="gpu-17")
    peer.say(story.document(limits=LIMITS))

    expect(toast).to_contain_text("answers again")
    expect(toast).to_have_count(1)
    expect(lab.headline).to_have_text("Ready on gpu-17, admitted in 3 min 12 s.")
    expect(lab.panel.get_by_role("list", name="Since then")).to_contain_text(
        "gpu-17 answers again"
    )
    expect(waiting).to_be_focused()
    expect(lab.panel.locator("details").nth(1)).to_have_attribute("open", "")


def test_a_controller_that_dies_leaves_the_last_data_and_an_honest_line(
    lab: PanelLab, peer: TimelinePeer
) -> None:
    """The panel says since when it knows nothing, tries by itself, and recovers."""
    lab.open()
    peer.go_away()
    try:
        expect(lab.panel.locator(".fleet-Timeline-notice")).to_have_text(
            re.compile("The fleet.s controller does not answer.")
        )
        expect(lab.panel.locator(".fleet-Timeline-heard")).to_have_text(
            re.compile(r"Last heard \d+ s ago · trying again")
        )
        expect(lab.status).to_have_text("? Admission: no answer")
        expect(lab.panel.locator(".fleet-Timeline-step")).to_have_count(5)
        lab.photograph("away")
        assert lab.violations() == []
    finally:
        peer.come_back()

    expect(lab.panel.locator(".fleet-Timeline-notice")).to_have_count(0)
    expect(lab.panel.locator(".fleet-Timeline-heard")).to_contain_text("live")


def test_a_browser_without_network_says_so(lab: PanelLab) -> None:
    """Offline is another thing than a dead controller; the last data stay."""
    lab.open()
    lab.page.context.set_offline(True)
    expect(lab.panel.locator(".fleet-Timeline-notice")).to_have_text("You are offline.")
    expect(lab.panel.locator(".fleet-Timeline-step")).to_have_count(5)
    lab.page.context.set_offline(False)
    expect(lab.panel.locator(".fleet-Timeline-heard")).to_contain_text("live")


def test_a_wait_shows_who_is_ahead_and_what_would_help(
    lab: PanelLab, peer: TimelinePeer
) -> None:
    """The running step is open by itself, marked as the current one, and ticks."""
    lab.open()
    why = {"reason": "metal_busy", "machine": "mac-07", "holders": [{"workload": "w"}]}
    story = (
        Story(began_seconds_ago=100)
        .then(0, "requested", "asked")
        .then(0, "queued", "waiting", explanation=why)
    )
    peer.say(story.document(position=2, explanation=why, machine=None))

    expect(lab.headline).to_contain_text("2 ahead of you.")
    current = lab.panel.locator('[aria-current="step"]')
    expect(current).to_contain_text("Waiting in line")
    expect(current).to_contain_text("held by somebody else with no known end")
    took = current.locator("summary .fleet-Timeline-took")
    before = took.inner_text()
    expect(took).not_to_have_text(before)
    lab.photograph("waiting")
    assert lab.violations() == []


def test_foreign_text_is_text(lab: PanelLab, peer: TimelinePeer) -> None:
    """Markup in a name or a detail is shown, and makes no element."""
    lab.open()
    hostile = '<img src=x onerror="document.title=1"><b>x</b>'
    story = an_admission().then(
        3_000,
        "ready",
        "note",
        machine=hostile,
        explanation={"reason": "offline", "machine": hostile, "detail": hostile},
    )
    peer.say(story.document(machine=hostile, profile_title=hostile))

    expect(lab.headline).to_contain_text("<b>x</b>")
    expect(lab.panel.locator("img, b")).to_have_count(0)
    assert lab.page.title() != "1"


def test_motion_colour_and_direction_are_the_readers_choice(
    lab: PanelLab, peer: TimelinePeer
) -> None:
    """Nothing moves for who asked for rest.

    In forced colours and from right to left the panel still reads.
    """
    lab.open()
    story = Story(began_seconds_ago=100).then(0, "queued", "waiting")
    peer.say(story.document(position=1))
    glyph = lab.panel.locator('[data-status="now"] .fleet-Timeline-glyph')
    animation = "glyph => getComputedStyle(glyph).animationName"
    expect(glyph).to_be_visible()
    assert glyph.evaluate(animation) == "fleet-pulse"
    lab.page.emulate_media(reduced_motion="reduce")
    assert glyph.evaluate(animation) == "none"

    lab.page.emulate_media(forced_colors="active")
    lab.photograph("forced-colours")
    lab.page.emulate_media(forced_colors="none")

    lab.page.evaluate("() => { document.documentElement.dir = 'rtl'; }")
    lab.photograph("right-to-left")
    mark, label = (
        glyph.bounding_box(),
        lab.panel.locator(".fleet-Timeline-label").nth(1),
    )
    box = label.bounding_box()
    assert mark is not None
    assert box is not None
    assert mark["x"] > box["x"]


def test_a_token_that_was_revoked_is_told_with_what_to_do(
    lab: PanelLab, peer: TimelinePeer
) -> None:
    """The panel says which of the things that can be wrong is, and looks again."""
    lab.open()
    peer.revoke()
    try:
        expect(lab.panel.locator(".fleet-Timeline-notice")).to_contain_text(
            "Restart the server to see its admission timeline."
        )
        lab.photograph("no-permission")
        assert lab.violations() == []
    finally:
        peer.accept(TOKEN)

    lab.panel.get_by_role("button", name="Try now").click()

    expect(lab.panel.locator(".fleet-Timeline-notice")).to_have_count(0)


def test_without_a_hub_the_status_bar_is_silent_and_the_panel_says_why(
    browser: Browser, python: Path, peer: TimelinePeer, tmp_path: Path
) -> None:
    """Somebody who runs the environment at home is not bothered."""
    with (
        lab_server(python, tmp_path, {}) as address,
        lab_page(browser, address) as page,
    ):
        lab = PanelLab(page=page, peer=peer)
        page.keyboard.press("Control+Alt+t")
        expect(lab.panel.locator(".fleet-Timeline-notice")).to_have_text(
            "This server was not started by a JupyterHub with admission control."
        )
        expect(lab.status).to_be_hidden()
        lab.photograph("no-hub")


def test_the_panel_works_in_notebook_7(
    browser: Browser, address: str, peer: TimelinePeer, home: Path
) -> None:
    """There is no status bar and no left side: the panel opens from the menu.

    Before that, a machine that is lost is told all the same.
    """
    story = an_admission()
    peer.say(story.document(limits=LIMITS))
    (home / "a.ipynb").write_text(json.dumps(_NOTEBOOK))
    notebook = address.replace("/lab?", "/notebooks/a.ipynb?")
    with lab_page(browser, notebook) as page:
        story.then(3_000, "unknown", "silent", machine="mac-07")
        peer.say(story.document(limits=LIMITS))
        toast = page.locator(".Toastify__toast").filter(has_text="mac-07")
        expect(toast).to_contain_text("does not answer the fleet")
        page.get_by_role("menuitem", name="View", exact=True).click()
        page.get_by_role("menuitem", name=re.compile("^Admission Timeline")).click()
        lab = PanelLab(page=page, peer=peer)
        expect(lab.headline).to_be_visible()
        lab.photograph("notebook")


_NOTEBOOK = {
    "cells": [],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
