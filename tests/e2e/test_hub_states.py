"""The Hub's pages where something is wrong, or is somebody else's, or in another language.

Axe finds what a machine can find; the pictures in ``artefacts`` are for people.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pseudo_language
import pytest
from accessibility import faults, hub_theme
from fleet import Fleet
from fleet_parts import NEEDS_HUB, wait_until
from lab_browser import hub_page, script_runs
from lab_server import require_front_end
from playwright.sync_api import expect
from shared_fleet import as_found


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(400),
]
SPOKEN_TO = re.compile(r"\b(you|your)\b", re.IGNORECASE)
QUICKLY = "c.JupyterHub.tornado_settings = {'slow_spawn_timeout': 1}"
DATA = {
    "ada",
    "box",
    "whole",
    "small",
    "python",
    "JupyterHub",
    "Small",
    "Whole",
    "Pretended",
    "One",
    "All",
    "Both",
    "Little.",
    "All cores.",
    "A small one.",
    "The whole machine.",
    "Small or whole.",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet where ada's machine prepares for ever, dora's breaks, and all can be said."""
    require_front_end()
    folder = tmp_path_factory.mktemp("fleet")
    pack = pseudo_language.install(folder / "pack")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(pack))
        with Fleet(folder=folder, queue_hold=3, more_config=QUICKLY) as started:
            for user, behaviour in {
                "ada": {"prepare_seconds": 600},
                "dora": {"fault": "start_fails", "prepare_seconds": 3},
            }.items():
                started.token_of(user)
                name = "box" if user == "ada" else "broken"
                started.add_machine(name, owner=user, **behaviour)
            started.token_of("admin")
            yield started


@pytest.fixture
def running(shared: Fleet) -> Iterator[Fleet]:
    """That fleet, as each test finds it."""
    with as_found(shared) as fleet:
        yield fleet


@contextmanager
def without_controller(running: Fleet) -> Iterator[None]:
    """Nobody answers in the controller's place; afterwards it is back."""
    running._remember()
    supervisor, *children = running.controller_processes()
    supervisor.kill()
    for child in children:
        child.kill()
    with socket.socket() as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def is_taken() -> bool:
            try:
                place.bind(("127.0.0.1", running.controller_port))
            except OSError:
                return False
            return True

        wait_until(is_taken, "the controller's place is empty")
        # A place that is only bound could be taken by the controller that the Hub
        # starts anew after a while.
        place.listen()
        refusing = threading.Thread(target=_hang_up, args=[place], daemon=True)
        refusing.start()
        try:
            yield
        finally:
            place.shutdown(socket.SHUT_RDWR)
            refusing.join()
    running.wait_for_controller()
    for name in running.machines:
        running.wait_for_agent(name)


def _hang_up(place: socket.socket) -> None:
    """Answer nobody, at once, until *place* is shut."""
    while True:
        try:
            place.accept()[0].close()
        except OSError:
            return


def test_a_failed_start_is_told_to_everybody(running: Fleet) -> None:
    """Why, how far it came, and what to do next, in every look."""
    with hub_page("state-failed", running.url, "dora") as page:
        page.goto(f"{running.url}/hub/spawn?choice=one")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(
            "Your server did not start"
        )
        expect(page.get_by_role("alert")).to_contain_text("could not be started")
        expect(page.locator("[data-status=failed]")).to_have_count(1)
        # Above it in the alert, and in the row: not a third time.
        expect(
            page.locator(".fleet-Timeline-heard, .fleet-Timeline-actions").first
        ).to_be_attached()
        expect(page.locator(".fleet-Timeline-headline")).to_have_count(0)
        wrong = faults(page, "failed", ".row", theme=hub_theme)
        assert wrong == []


def test_pages_of_the_hub_say_that_the_controller_is_away(running: Fleet) -> None:
    """The form, a server that may wait, and a page that was open: none is blank."""
    with hub_page("state-away", running.url, "ada") as page:
        page.goto(f"{running.url}/hub/spawn/ada/kept?choice=one")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.locator("[data-phase=starting][data-status=now]")).to_be_visible()
        with without_controller(running):
            expect(page.locator(".fleet-Timeline-notice")).to_contain_text(
                "does not answer"
            )
            expect(page.locator(".fleet-Timeline-step")).to_have_count(5)
            wrong = faults(page, "pending-away", ".row", theme=hub_theme)
            page.goto(f"{running.url}/hub/spawn/ada/form")
            expect(page.get_by_role("alert")).to_contain_text("does not answer")
            wrong += faults(page, "form-away", "#spawn_form", theme=hub_theme)
            page.goto(f"{running.url}/hub/user/ada/unknown/")
            expect(page.get_by_role("alert")).to_contain_text("does not answer")
            wrong += faults(page, "not-running-away", ".row", theme=hub_theme)
        assert wrong == []


def test_an_admin_is_not_told_that_a_server_is_theirs(running: Fleet) -> None:
    """The form, a start under way, a place in the line and a server that is off."""
    with hub_page("state-admin", running.url, "admin") as page:
        said = {}

        def look(name: str, *where: str) -> None:
            told = page.evaluate(pseudo_language.TOLD, ", ".join(where))
            said[name] = [text for text in told if SPOKEN_TO.search(text)]

        page.goto(f"{running.url}/hub/spawn/ada/shown?choice=one")
        expect(page.get_by_text("For ada")).to_be_visible()
        look("form", "#spawn_form")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.locator("[data-phase=starting][data-status=now]")).to_be_visible()
        script_runs(page)
        page.click("#fleet-leave")
        look("pending", "h1", ".row .row")
        wrong = faults(page, "admin-pending", ".row", theme=hub_theme)
        page.goto(f"{running.url}/hub/spawn/ada/parked?choice=all")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Its place")
        look("parked", "h1", ".row .row, .fleet-view")
        page.goto(f"{running.url}/hub/user/ada/off/")
        look("off", "h1", ".row")
        assert wrong == []
        assert said == {name: [] for name in said}


def test_no_word_of_a_hub_page_is_left_in_english(running: Fleet) -> None:
    """Form, start, place in the line, end, and what went wrong, after their scripts."""
    left = {}
    with hub_page("state-translated", running.url, "ada") as page:
        page.set_extra_http_headers(pseudo_language.HEADERS)

        def look(name: str, where: str) -> None:
            told = page.evaluate(pseudo_language.TOLD, where)
            words = pseudo_language.literals(told, DATA)
            if words:
                left[name] = words

        page.goto(f"{running.url}/hub/spawn/ada/told?choice=both")
        page.locator("#fleet-again").click()
        expect(page.locator("#fleet-checked")).to_contain_text("⟦")
        assert page.title().startswith("⟦")
        look("form", "main, .container:has(#spawn_form)")
        page.get_by_text("One", exact=True).click()
        page.locator("#spawn_form button[type=submit]").click()
        expect(page.locator("[data-phase=starting][data-status=now]")).to_be_visible()
        script_runs(page)
        page.click("#fleet-leave")
        look("pending", ".row .row")
        page.goto(f"{running.url}/hub/spawn/ada/waits?choice=all")
        page.locator("#spawn_form button[type=submit]").click()
        expect(page.locator("[data-phase=waiting][data-status=now]")).to_be_visible()
        expect(page.locator("a.fleet-grave")).to_be_visible()
        expect(page.locator("h1")).to_contain_text("⟦")
        look("parked", "h1, .row .row, .fleet-view")
        page.goto(f"{running.url}/hub/user/ada/off/")
        look("off", "h1, #start")
        page.goto(f"{running.url}/hub/spawn/ada/wrong?opt-profile=nothing")
        look("refused", ".spawn-error-msg")
        with without_controller(running):
            page.goto(f"{running.url}/hub/spawn/ada/form")
            look("form, away", "#spawn_form")
            page.goto(f"{running.url}/hub/user/ada/unknown/")
            look("off, away", "h1, .row .alert, .fleet-view")
    with hub_page("state-translated-failed", running.url, "dora") as page:
        page.set_extra_http_headers(pseudo_language.HEADERS)
        page.goto(f"{running.url}/hub/spawn/dora/broken?choice=one")
        page.locator("#spawn_form button[type=submit]").click()
        # The page before tells it as well, a moment before it is left.
        expect(page.locator("#start")).to_be_visible()
        script_runs(page)
        expect(page.locator("[data-status=failed]")).to_have_count(1)
        look_at = page.evaluate(pseudo_language.TOLD, "h1, .alert, .fleet-view, #start")
        words = pseudo_language.literals(look_at, {*DATA, "broken", "dora"})
        assert words == []
    assert left == {}, "\n".join(f"{name}: {words}" for name, words in left.items())
