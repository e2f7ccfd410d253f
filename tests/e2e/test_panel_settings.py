"""What the panel tells besides the five steps, and what a person can set."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from lab_browser import restored
from panel_lab import LIMITS, PanelLab
from playwright.sync_api import expect
from timeline_peer import Story, TimelinePeer, an_admission


pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

PLUGIN = "jupyterhub-fleet-lab:timeline"


def choose(lab: PanelLab, **settings: Any) -> None:
    """Set what a person can set in the settings editor; reset with no arguments."""
    lab.page.evaluate(
        """async ([plugin, chosen]) => {
            const settings = await jupyterapp.serviceManager.settings;
            await settings.save(plugin, JSON.stringify(chosen));
        }""",
        [PLUGIN, settings],
    )
    # As the settings editor does in another tab: what is open follows after a reload.
    lab.page.reload()
    restored(lab.page)


def test_limits_in_force_count_down(lab: PanelLab, peer: TimelinePeer) -> None:
    """The Mac's GPU, memory, cores, what ends it, and the time that is left, which ticks.

    Beside them, who asks for what is held.
    """
    lab.open()
    wished = {"reason": "release_wished", "subject": "bob"}
    story = an_admission().then(3_900, "ready", "note", explanation=wished)
    time_limits = {
        "limit": {"seconds": 7_200, "set_by": "class"},
        "idle_limit": {"seconds": 1_800, "set_by": "profile"},
    }
    limits = {
        **LIMITS,
        "metal_reserved": True,
        "ends_at": story.time(4_000 + 90),
        "idle_ends": story.time(4_000 + 60),
        "time_limits": time_limits,
    }
    peer.say(story.document(limits=limits))

    told = lab.panel.get_by_role("list", name="Limits")
    expect(told).to_contain_text("Holds the Mac's GPU")
    expect(told).to_contain_text("64 GiB of memory")
    expect(told).to_contain_text("4 cores")
    expect(told).to_contain_text(re.compile("Ends at .* unless something is computed"))
    expect(told).to_contain_text(
        "Ends after 2 h (set by the class), or after 30 min in which nothing is "
        "computed (set by the profile)"
    )
    since = lab.panel.get_by_role("list", name="Since then")
    expect(since).to_contain_text("Somebody, bob, waits for what this server holds")
    left = told.get_by_text("Time limit at")
    before = left.inner_text()
    expect(left).not_to_have_text(before)
    expect(lab.status).to_have_text(re.compile("Ends in"))
    toasts = lab.page.locator(".Toastify__toast").filter(has_text="end")
    expect(toasts).to_have_count(1)
    lab.photograph("limits")
    assert lab.violations() == []


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One state, and what of it is shown."""

    document: dict[str, Any]
    headline: str
    told: str
    status: str


def _waits_for_an_endpoint() -> Case:
    held = {"workload": "w0", "owner": "grace", "title": "Llama"}
    why = {"reason": "gpu_busy", "requested": 1, "unit": "devices", "holders": [held]}
    story = Story(began_seconds_ago=700).then(0, "queued", "waiting", explanation=why)
    return Case(
        document=story.document(position=3, explanation=why, machine=None),
        headline="3 ahead of you.",
        told="held by grace (Llama) with no known end",
        status="● Waiting: 3 ahead",
    )


def _can_never_run() -> Case:
    why: dict[str, Any] = {"reason": "exceeds_any_machine", "subject": "memory"}
    why |= {"requested": 2**42, "capacity": 2**38, "unit": "bytes"}
    story = Story(began_seconds_ago=5).then(0, "refused", explanation=why)
    return Case(
        document=story.document(explanation=why, machine=None),
        headline="This cannot run as asked: no machine is that large in memory",
        told="Ask for less, or add a larger machine.",
        status="✕ Refused",
    )


def _failed_to_start() -> Case:
    why = {"reason": "start_timeout", "requested": 60, "unit": "seconds"}
    story = Story(began_seconds_ago=200).then(0, "requested", "asked")
    story.then(5, "starting").then(70, "failed", explanation=why)
    return Case(
        document=story.document(explanation=why),
        headline="Failed: the server did not answer in time",
        told="show the details to an admin",
        status="✕ Failed",
    )


def _lost_its_machine() -> Case:
    why = {"reason": "machine_lost", "machine": "gpu-17"}
    story = an_admission().then(3_000, "unknown", "silent", machine="gpu-17")
    story.then(3_600, "failed", explanation=why)
    return Case(
        document=story.document(explanation=why),
        headline="Failed: on gpu-17, an admin declared the machine lost.",
        told="gpu-17 stopped answering",
        status="✕ Failed",
    )


def _has_lost_its_beginning() -> Case:
    return Case(
        document=an_admission().document(truncated=True),
        headline="Ready on gpu-17.",
        told="Older steps are no longer kept.",
        status="✓ gpu-large",
    )


@pytest.mark.parametrize(
    "case",
    [
        _waits_for_an_endpoint,
        _can_never_run,
        _failed_to_start,
        _lost_its_machine,
        _has_lost_its_beginning,
    ],
    ids=lambda case: case.__name__.strip("_").replace("_", "-"),
)
def test_each_state_has_its_words_and_something_to_do(
    lab: PanelLab, peer: TimelinePeer, case: Callable[[], Case]
) -> None:
    """With what a screen reader needs, and a picture in forced colours."""
    expected = case()
    peer.say(expected.document)
    expect(lab.status).to_have_text(expected.status)
    lab.open()

    expect(lab.headline).to_contain_text(expected.headline)
    expect(lab.panel).to_contain_text(expected.told)
    expect(lab.panel.get_by_role("button", name="Copy as text")).to_be_visible()
    name = case.__name__.strip("_").replace("_", "-")
    lab.photograph(name)
    assert lab.violations() == []
    lab.page.emulate_media(forced_colors="active")
    lab.photograph(f"{name}-forced-colours")


def test_earlier_starts_are_told_in_a_line_each(
    lab: PanelLab, peer: TimelinePeer
) -> None:
    """How long each took and how it ended, below the present one."""
    lab.open()
    story = Story(began_seconds_ago=9_000)
    story.then(0, "requested", "asked").then(30, "ready").then(60, "stopped")
    for seconds, state, kind in (
        *((8_000, "requested", "asked"), (8_010, "placed", "placed")),
        (8_020, "ready", "ready"),
    ):
        story.then(seconds, state, kind, generation=2)
    peer.say(story.document(generation=2))

    runs = lab.panel.locator(".fleet-Timeline-runs")
    expect(runs.locator("summary")).to_have_text("1 earlier start")
    runs.locator("summary").click()
    expect(runs.get_by_role("listitem")).to_contain_text("ready in 30 s · stopped")
    expect(lab.headline).to_contain_text("admitted in 20 s")
    lab.photograph("earlier-starts")


def test_the_palette_has_the_commands(lab: PanelLab) -> None:
    """Whoever types instead of pointing finds them."""
    lab.page.evaluate(
        "jupyterapp.commands.execute('apputils:activate-command-palette')"
    )
    palette = lab.page.locator(".lm-CommandPalette:visible")
    palette.locator("input").fill("admission timeline")
    expect(palette.locator(".lm-CommandPalette-item")).to_have_count(6)
    lab.page.keyboard.press("Escape")
    expect(palette).to_be_hidden()


def test_the_panel_is_where_it_was_after_a_reload(lab: PanelLab) -> None:
    """The layout is kept, like that of every other side panel."""
    with lab.page.expect_response(
        lambda answer: (
            "/api/workspaces/" in answer.url
            and answer.request.method == "PUT"
            and "jp-fleet-timeline" in (answer.request.post_data or "")
        )
    ):
        lab.open()
    lab.page.goto(lab.page.url.split("?")[0])
    restored(lab.page)

    expect(lab.headline).to_be_visible()


def test_a_person_can_turn_each_part_off(lab: PanelLab, peer: TimelinePeer) -> None:
    """No status item, no word about a machine that went silent, and times by the clock.

    What is off by itself can be turned on: a card in the launcher.
    """
    card = lab.page.locator(".jp-LauncherCard").filter(has_text="Admission Timeline")
    expect(card).to_have_count(0)
    choose(lab, statusItem=False, notifications=False, times="absolute", launcher=True)
    try:
        expect(card).to_be_visible()
        expect(lab.status).to_be_hidden()
        story = an_admission().then(3_000, "unknown", "silent", machine="gpu-17")
        peer.say(story.document())
        lab.page.keyboard.press("Control+Alt+t")
        expect(lab.headline).to_contain_text("does not answer")
        expect(lab.page.locator(".Toastify__toast")).to_have_count(0)
        lab.panel.locator("summary").first.click()
        expect(lab.panel.locator(".fleet-Timeline-when").first).to_have_text(
            re.compile(r"^\d+ \w+ \d{4}, \d\d:\d\d:\d\d CET$")
        )
        expect(lab.panel.locator(".fleet-Timeline-when").first).to_have_attribute(
            "title", re.compile(r"^\d+ \w+ \d+ \w+ ago$")
        )
    finally:
        choose(lab)
    expect(lab.status).to_be_visible()
    expect(card).to_have_count(0)
