"""JupyterLab in headless Chromium, driven as a person would, waited for by events."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import last_words
from patience import PATIENCE
from playwright.sync_api import Error, Page, WebSocket, expect, sync_playwright


ARTEFACTS = Path(__file__).parents[2] / "artefacts"
PATIENCE_MS = PATIENCE * 1000


def chromium() -> str | None:
    """Return where the system's Chromium is, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser_page(name: str) -> Iterator[Page]:
    """A page of a fresh browser; what it shows at the end is kept as an artefact."""
    ARTEFACTS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(),
            args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        try:
            yield page
        except (AssertionError, Error) as error:
            error.add_note(last_words.of_page(page))
            raise
        finally:
            # For people: whatever the test is about has been seen by now.
            with suppress(Error):
                page.unroute_all(behavior="ignoreErrors")
                photograph(page, f"{name}-end")
            browser.close()


@contextmanager
def hub_page(name: str, url: str, user: str) -> Iterator[Page]:
    """A browser in which *user* is logged in; a script's fault fails the test."""
    faults: list[str] = []
    with browser_page(name) as page:
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{url}/hub/login")
        page.fill("#username_input", user)
        page.fill("#password_input", user)
        page.click("#login_submit")
        expect(page.locator("#login_widget")).to_contain_text(user)
        # Away from the form, which follows a server that is started elsewhere.
        page.goto("about:blank")
        yield page
    assert faults == []


def photograph(page: Page, name: str, *, whole: bool = False) -> Path:
    """Keep a picture of what *page* shows now, or of the *whole* of it."""
    path = ARTEFACTS / f"{name}.png"
    page.screenshot(path=path, caret="initial", full_page=whole)
    return path


def script_runs(page: Page) -> None:
    """Return once the script of a server's page hears clicks: its rows are there before."""
    page.wait_for_function("window._jupyterhub_page_loaded")


def restored(page: Page) -> None:
    """Return once JupyterLab has put its windows back: it would undo what comes before."""
    page.locator("#jp-main-dock-panel").wait_for()
    page.wait_for_function("window.jupyterapp")
    page.evaluate("() => jupyterapp.restored.then(() => true)")


def _is_kernel(socket: WebSocket) -> bool:
    return "/api/kernels/" in socket.url


def _is_terminal(socket: WebSocket) -> bool:
    return "/terminals/websocket/" in socket.url


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """A terminal tab and the socket behind it."""

    page: Page
    socket: WebSocket

    def run(self, command: str, *, until: str) -> str:
        """Type *command*; return what the terminal printed until *until* came.

        *until* must not be part of the command, which the terminal echoes.
        """
        printed: list[str] = []

        def is_done(frame: str | bytes) -> bool:
            kind, *rest = json.loads(frame)
            if kind == "stdout":
                printed.append(rest[0])
            return until in "".join(printed)

        with self.socket.expect_event("framereceived", is_done):
            self.page.locator(".jp-Terminal .xterm-helper-textarea").focus()
            self.page.keyboard.type(command + "\n")
        return "".join(printed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """JupyterLab of the server at *url*, in *page*."""

    page: Page
    url: str

    def open_notebook(self, path: str) -> None:
        """Open a notebook and return when its kernel has talked and is idle."""
        # Reset, or the tabs of the last time would open again beside it.
        self.page.goto(f"{self.url.rstrip('/')}/lab/tree/{path}?reset")
        # An indicator that was never told anything says "idle" as well; a kernel that
        # was told of has a name.
        expect(
            self.page.locator(".jp-KernelName, .jp-Toolbar-kernelName").first
        ).to_contain_text("Python")
        expect(self.page.locator(".jp-Notebook-ExecutionIndicator")).to_have_attribute(
            "data-status", "idle"
        )

    def run_all_cells(self) -> None:
        """Run all cells from the menu, as a person does."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()

    def expect_outputs(self, *texts: str) -> None:
        """Return when the notebook shows an output with each of *texts*, in order."""
        outputs = self.page.locator(".jp-OutputArea-output")
        for number, text in enumerate(texts):
            expect(outputs.nth(number)).to_contain_text(text)

    def save(self) -> None:
        """Save the notebook, and return when the server has stored it."""
        with self.page.expect_response(
            lambda answer: (
                "/api/contents/" in answer.url and answer.request.method == "PUT"
            )
        ) as saving:
            self.page.keyboard.press("Control+s")
        assert saving.value.ok

    def open_terminal(self) -> Terminal:
        """Open a terminal from the launcher."""
        self.page.get_by_role("button", name="New Launcher").first.click()
        with self.page.expect_websocket(_is_terminal) as opening:
            self.page.locator(
                '.jp-LauncherCard[title="Start a new terminal session"]'
            ).click()
        socket = opening.value
        socket.wait_for_event("framereceived")
        expect(self.page.locator(".jp-Terminal")).to_be_visible()
        return Terminal(page=self.page, socket=socket)
