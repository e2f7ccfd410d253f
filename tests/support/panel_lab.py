"""JupyterLab with the built panel in a browser, for tests with a hand on the controller."""

from __future__ import annotations

from dataclasses import dataclass

from accessibility import violations
from lab_browser import ARTEFACTS, PATIENCE_MS, restored
from playwright.sync_api import Browser, Error, Locator, Page, expect
from timeline_peer import TimelinePeer


TOKEN = "timeline-token-of-ada"
LIGHT = "JupyterLab Light"
LIMITS = {"cpu_milli": 4000, "memory_bytes": 64 * 1024**3, "devices": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelLab:
    """JupyterLab in a page, with a hand on the controller."""

    page: Page
    peer: TimelinePeer

    @property
    def panel(self) -> Locator:
        """The side panel."""
        return self.page.locator("#jp-fleet-timeline")

    @property
    def headline(self) -> Locator:
        """The sentence that stands first."""
        return self.panel.locator(".fleet-Timeline-headline")

    @property
    def status(self) -> Locator:
        """The item of the status bar."""
        return self.page.locator(".jp-FleetStatus-button")

    def open(self) -> None:
        """Open the panel from the status bar, and return once it shows what is told."""
        self.status.click()
        self.shown()

    def shown(self) -> None:
        """Return once the rows are those of the workload that is told now."""
        workload = self.peer.told()["workload"]
        steps = self.panel.locator(f"ol[data-fleet-key='steps-{workload}-1']")
        expect(steps).to_be_visible()

    def theme(self, name: str) -> None:
        """Change JupyterLab's theme, and return when it is on."""
        self.page.evaluate(
            "theme => jupyterapp.commands.execute('apputils:change-theme', {theme})",
            name,
        )
        # Named once its style sheet is loaded.  The network is never idle: the status
        # item waits for news.
        expect(self.page.locator("body")).to_have_attribute("data-jp-theme-name", name)

    def narrow(self, width: int) -> None:
        """Make the panel *width* wide, as a theme or a person can."""
        # JupyterLab's own least width is 250 pixels.
        size = f"min-width: 0 !important; width: {width}px !important;"
        self.page.add_style_tag(content=f"#jp-fleet-timeline {{ {size} }}")
        box = self.panel.bounding_box()
        assert box is not None
        assert box["width"] == width

    def reset(self) -> None:
        """Put everything back that a test may have changed."""
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.context.set_offline(False)
        if self.page.locator("body").get_attribute("data-jp-theme-name") != LIGHT:
            self.theme(LIGHT)
        self.page.emulate_media(reduced_motion="no-preference", forced_colors="none")
        self.page.evaluate(
            """async () => {
                document.documentElement.dir = 'ltr';
                document.querySelectorAll('style:not([data-kept])').forEach(style => {
                    if (style.textContent.startsWith('#jp-fleet')) style.remove();
                });
                document.activeElement.blur();
                const shown = document.querySelector('#jp-fleet-timeline:not(.lm-mod-hidden)');
                if (shown) {
                    await jupyterapp.commands.execute('application:toggle-right-area');
                }
            }"""
        )
        for toast in self.page.locator(".Toastify__close-button").all():
            toast.click()

    def photograph(self, name: str) -> None:
        """Keep a picture of the whole window."""
        self.page.screenshot(path=ARTEFACTS / f"panel-{name}.png")

    def violations(self) -> list[str]:
        """Return what axe finds wrong in panel and status item."""
        return violations(self.page, "#jp-fleet-timeline", ".jp-FleetStatus")


class lab_page:  # noqa: N801 - reads as a function
    """A fresh page at an address; errors of its scripts fail the test."""

    def __init__(self, browser: Browser, address: str) -> None:
        self._context = browser.new_context(
            viewport={"width": 1280, "height": 800},
            permissions=["clipboard-read", "clipboard-write"],
            locale="en-GB",
            timezone_id="Europe/Berlin",
        )
        self._address = address
        self.errors: list[str] = []

    def __enter__(self) -> Page:
        page = self._context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page.on("pageerror", self._note)
        page.goto(f"{self._address}&reset")
        page.locator("#jp-main-dock-panel, #main-panel").wait_for()
        if page.locator("#jp-main-dock-panel").count():
            restored(page)
        return page

    def __exit__(self, kind: object, *rest: object) -> None:
        self._context.close()
        if kind is None:
            assert self.errors == []

    def _note(self, error: Error) -> None:
        # JupyterLab and the notebook application have errors of their own.
        if "jupyterhub-fleet-lab" in (error.stack or ""):
            self.errors.append(str(error))
