"""The Hub's pages and the controller's for everybody: each state, in each look.

Axe finds what a machine can find; the pictures in ``artefacts`` are for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from accessibility import browser_theme, faults, hub_theme
from fleet import Fleet
from fleet_parts import ALL_CORES, NEEDS_HUB
from lab_browser import hub_page, photograph, script_runs
from lab_server import require_front_end
from playwright.sync_api import Page, Route, expect
from shared_fleet import as_found


pytestmark = [
    *NEEDS_HUB,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(400),
]
PROFILES = 200
IS_COVERED = """element => {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return !element.closest(".fleet-card").contains(there);
}"""
PUT_UNDER_THE_BUTTON = """element => {
  const bar = document.querySelector("#spawn_form .feedback-container");
  const middle = (box) => (box.top + box.bottom) / 2;
  const [mine, its] = [element, bar].map((one) => middle(one.getBoundingClientRect()));
  scrollBy({ top: mine - its, behavior: "instant" });
}"""
CATALOG = f"""
classes:
  - {{name: small, title: Small, cpu: 0.1, memory: 64M, limit: 8h}}
  - {{name: whole, title: Whole, cpu: {ALL_CORES}, memory: 64M}}
  - {{name: huge, title: Huge, cpu: 4000, memory: 64M}}
runtimes:
  - {{name: pretend, title: Pretended, accelerators: [cpu], ref: pretended}}
profiles:
  - {{name: all, title: All, description: "The whole machine.", classes: [whole], runtimes: [pretend]}}
  - {{name: both, title: Both, description: "Small or whole.", classes: [small, whole], runtimes: [pretend], idle_limit: 2h}}
  - {{name: never, title: Never, description: "Larger than any machine.", classes: [huge], runtimes: [pretend]}}
""" + "".join(
    f"  - {{name: p{number}, title: Profile {number}, classes: [small], runtimes: [pretend]}}\n"
    for number in range(PROFILES - 3)
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet with many profiles, whose machine prepares for a long time."""
    require_front_end()
    folder = tmp_path_factory.mktemp("fleet")
    with Fleet(folder=folder, queue_hold=3, catalog=CATALOG) as started:
        started.token_of("ada")
        started.add_machine("box", owner="ada", prepare_seconds=600)
        yield started


@pytest.fixture
def running(shared: Fleet) -> Iterator[Fleet]:
    """That fleet, as each test finds it."""
    with as_found(shared) as fleet:
        yield fleet


@pytest.fixture
def page(running: Fleet, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Ada's browser, logged in; a script's fault fails the test."""
    with hub_page(f"wcag-{request.node.name}", running.url, "ada") as opened:
        yield opened


def test_two_hundred_profiles_can_be_searched_and_read(
    running: Fleet, page: Page
) -> None:
    """Words narrow them down, the chosen one stays, Enter starts nothing."""
    page.clock.install()
    page.goto(f"{running.url}/hub/spawn/ada/search?choice=both/whole")
    cards = page.locator("[data-fleet-card]:visible")
    expect(cards).to_have_count(PROFILES)
    search = page.get_by_label(f"Search {PROFILES} profiles")
    search.fill("profile 17")
    # 17, 117, 170 to 179 but the ones beyond, and the chosen one
    expect(page.locator("#fleet-found")).to_have_text("12 of 200 profiles found")
    expect(page.locator("[data-fleet-card=both]")).to_be_visible()
    search.press("Enter")
    assert "spawn/ada/search" in page.url
    expect(page.locator("#fleet-profile-p17")).to_be_focused()
    photograph(page, "form-search")
    search.fill("")
    expect(cards).to_have_count(PROFILES)
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_in_viewport()
    chosen = page.get_by_text("Chosen: ")
    expect(chosen).to_have_text("Chosen: Both · Whole")
    page.get_by_label("Class of Both").select_option("small")
    expect(chosen).to_have_text("Chosen: Both · Small")
    ends = page.locator("#fleet-ends-both")
    expect(ends).to_have_text(
        "Ends after 8 h (set by the class), or after 2 h in which nothing is computed "
        "(set by the profile)"
    )
    page.get_by_label("Class of Both").select_option("whole")
    expect(ends).to_have_text(
        "Ends after 2 h in which nothing is computed (set by the profile)"
    )
    # Where the keyboard goes, the button that stays in reach does not lie: a browser
    # would leave what it covers where it is.
    # A moving page is for a moment where it was.
    page.emulate_media(reduced_motion="reduce")
    page.locator("#fleet-profile-p100").focus()
    for number in range(101, 104):
        following = page.get_by_label(f"Profile {number}", exact=True)
        following.evaluate(PUT_UNDER_THE_BUTTON)
        assert following.evaluate(IS_COVERED)
        page.keyboard.press("ArrowDown")
        expect(following).to_be_focused()
        page.wait_for_function(
            f"element => !({IS_COVERED})(element)", arg=following.element_handle()
        )
    expect(chosen).to_have_text("Chosen: Profile 103 · Small")
    expect(chosen).to_be_in_viewport()


def test_an_open_form_keeps_up_without_getting_in_the_way(
    running: Fleet, page: Page
) -> None:
    """Focus stays, the chosen card alone is announced, and nothing old is called new."""
    page.clock.install()
    path = f"{running.url}/hub/spawn/ada/open"
    page.goto(f"{path}?choice=p1")
    link = page.locator("[data-fleet-card=p1] a")
    link.focus()
    answers: list[str] = []

    def answer(route: Route) -> None:
        if answers[-1] == "away":
            route.fulfill(content_type="text/html", body="<form></form>")
            return
        text = route.fetch().text()
        route.fulfill(
            content_type="text/html", body=text.replace(*answers[-1].split("→"))
        )

    page.route(path, answer)
    answers.append('<strong class="fleet-word">→<strong class="fleet-word">Still: ')
    page.evaluate("document.getElementById('fleet-again').click()")
    told = page.locator("#fleet-state-p1")
    expect(told).to_contain_text("Still: ")
    expect(link).to_be_focused()
    said = page.locator("#fleet-live").text_content()
    assert said == " ".join((told.text_content() or "").split())
    answers.append("Ends after 8 h→Ends after 9 h")
    page.evaluate("document.getElementById('fleet-again').click()")
    expect(page.locator("#fleet-ends-p1")).to_have_text(
        "Ends after 9 h (set by the class)"
    )
    answers.append("away")
    page.clock.fast_forward(40_000)
    expect(page.locator("#fleet-checked")).to_contain_text("trying again")
    answers.append('data-fleet-card="p2"→data-fleet-card="another"')
    with page.expect_navigation(url=re.compile(r"\?choice=p1$")):
        page.clock.fast_forward(10_000)


def test_the_form_is_for_everybody(running: Fleet, page: Page) -> None:
    """Free, busy and never, with one live region."""
    page.goto(f"{running.url}/hub/spawn/ada/form")
    expect(page.locator("[data-fleet-card=never]")).to_contain_text("Cannot run here")
    expect(page.locator("[data-fleet-card=never]")).to_contain_text("No machine is")
    expect(page.locator("[role=status]")).to_have_count(1)

    photograph(page, "form-top")
    # The button that stays in reach lies over a card elsewhere.
    page.evaluate("scrollTo(0, document.body.scrollHeight)")

    assert faults(page, "form", "#spawn_form", theme=hub_theme) == []


def test_a_start_can_be_watched_by_everybody(running: Fleet, page: Page) -> None:
    """Preparing, and another one that waits with its place kept; then none."""
    # As over plain http, where a browser has no clipboard.
    page.add_init_script(
        "Object.defineProperty(window, 'isSecureContext', {value: false})"
    )
    page.goto(f"{running.url}/hub/spawn?choice=all")
    page.get_by_role("button", name="Start", exact=True).click()
    now = page.locator("[data-phase=starting][data-status=now]")
    expect(now).to_be_visible()
    expect(page.locator("#fleet-timeline [role=status]")).to_have_count(1)
    copy = page.get_by_role("button", name="Copy as text")
    script_runs(page)
    copy.click()
    expect(page.locator(".fleet-Timeline-notice")).to_have_text("Copied.")
    expect(copy).to_be_focused()
    with page.expect_download() as saving:
        page.get_by_role("button", name="Download text").click()
    assert saving.value.suggested_filename.startswith("admission-default-")
    page.get_by_role("button", name="Tell me when it is ready").click()
    expect(page.locator(".fleet-Timeline-notice")).to_contain_text("https")
    page.click("#fleet-leave")
    expect(page.locator("#fleet-stay")).to_be_focused()
    wrong = faults(page, "pending", "#fleet-timeline", ".row", theme=hub_theme)

    page.goto(f"{running.url}/hub/spawn/ada/lab?choice=all")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        re.compile("Your place in the line is kept")
    )
    wrong += faults(page, "parked", "#fleet-timeline", ".row", theme=hub_theme)

    # By the cookie that a person has: the page must not be sent to log in again.
    with page.expect_response(
        re.compile(r"/api/workloads/\w+/timeline\?wait=20$")
    ) as told:
        page.get_by_role("link", name="Leave the line…").click()
    assert told.value.status == 200
    expect(page.get_by_role("heading", level=1)).to_contain_text("“lab”")
    expect(page.locator("[data-phase=waiting][data-status=now]")).to_be_visible()
    wrong += faults(page, "workload", theme=browser_theme)
    page.get_by_text("Leave the line…").click()
    page.get_by_role("button", name="Leave the line").click()
    expect(page.get_by_role("link", name="Start again")).to_be_visible()
    wrong += faults(page, "workload-over", theme=browser_theme)

    page.goto(f"{running.url}/hub/user/ada/lab/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Server not running")
    expect(page.get_by_text("You left the line")).to_be_visible()
    wrong += faults(page, "not-running", ".row", theme=hub_theme)

    page.goto(f"{running.url}/hub/spawn-pending/ada")
    page.click("#fleet-leave")
    page.click("#fleet-leave-now")
    expect(page.get_by_role("heading", level=1)).to_have_text("Server not running")
    wrong += faults(page, "cancelled", ".row", theme=hub_theme)
    page.goto(f"{running.url}/hub/nothing/here")
    expect(page.get_by_role("heading", level=1)).to_contain_text("404")
    wrong += faults(page, "hub-404", ".error", theme=hub_theme)
    assert wrong == []
