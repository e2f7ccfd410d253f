"""What the panel adds to JupyterLab's start, and how soon it is drawn once opened.

``python benchmarks/panel_browser.py [--loads 10]``, after ``make panel``.  The same
JupyterLab is loaded in turns with and without the extension; what counts is the work of
the page's main thread until the application is restored, because the time on the clock
is the browser's and the server's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from figures import REPOSITORY, keep


sys.path.insert(0, str(REPOSITORY / "tests/support"))

from lab_browser import chromium
from lab_server import lab_environment, lab_server
from timeline_peer import TimelinePeer, an_admission


TOKEN = "timeline-token-of-this-benchmark"
NAME = "jupyterhub-fleet-lab"
TARGETS = {"start_milliseconds": 15, "first_paint_milliseconds": 100}
OPEN = """async command => {
    const began = performance.now();
    await jupyterapp.commands.execute(command);
    const panel = document.querySelector('#jp-fleet-timeline');
    while (panel.querySelectorAll('.fleet-Timeline-step').length < 5) {
        await new Promise(resolve => requestAnimationFrame(resolve));
    }
    // The frame that holds the rows has been handed to the screen after this.
    await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)));
    return performance.now() - began;
}"""


def main() -> int:
    """Measure, keep, and return 0 if the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loads", type=int, default=10)
    loads = parser.parse_args().loads
    with_it, without, paints = measure(loads)
    met = keep(
        "panel_browser",
        samples={
            "start_with_seconds": with_it,
            "start_without_seconds": without,
            "first_paint_seconds": paints,
        },
        ratios={
            "start_milliseconds": 1000
            * (statistics.median(with_it) - statistics.median(without)),
            "first_paint_milliseconds": 1000 * statistics.median(paints),
        },
        targets=TARGETS,
        facts={"loads": loads, "start": "main thread's work until restored"},
    )
    return 0 if met else 1


def measure(loads: int) -> tuple[list[float], list[float], list[float]]:
    """Return the starts with and without the extension, and the first paints."""
    with (
        tempfile.TemporaryDirectory() as folder,
        TimelinePeer(an_admission().document(), token=TOKEN) as peer,
        sync_playwright() as playwright,
    ):
        home = Path(folder) / "home"
        python = lab_environment(Path(folder))
        environment = {
            "JUPYTERHUB_FLEET_URL": peer.url,
            "JUPYTERHUB_FLEET_TIMELINE_TOKEN": TOKEN,
            "JUPYTERHUB_USER": "ada",
            "JUPYTERHUB_SERVER_NAME": "gpu",
        }
        with lab_server(python, home, environment) as address:
            browser = playwright.chromium.launch(
                executable_path=chromium(),
                args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
            )
            with_it, without, paints = [], [], []
            for number in range(-1, loads):
                for is_on in (True, False):
                    disable(home, () if is_on else (NAME,))
                    started, painted = load(browser, address, opens=is_on)
                    if number < 0:
                        # The first one fills the caches of the server.
                        continue
                    (with_it if is_on else without).append(started)
                    paints += painted
            browser.close()
    return with_it, without, paints


def disable(home: Path, names: Sequence[str]) -> None:
    """Have the next page that is loaded leave these extensions out."""
    path = home / ".jupyter" / "labconfig" / "page_config.json"
    config = json.loads(path.read_text())
    kept = {k: v for k, v in config["disabledExtensions"].items() if k != NAME}
    config["disabledExtensions"] = kept | dict.fromkeys(names, True)
    path.write_text(json.dumps(config))


def load(browser: Browser, address: str, *, opens: bool) -> tuple[float, list[float]]:
    """Load JupyterLab anew; return its start, and the panel's first paint if it opens."""
    context = browser.new_context()
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    page.goto(f"{address}&reset")
    page.wait_for_function("window.jupyterapp")
    page.evaluate("jupyterapp.restored")
    started = work(session.send("Performance.getMetrics")["metrics"])
    is_there = page.evaluate("name => jupyterapp.hasPlugin(`${name}:panel`)", NAME)
    assert is_there is opens, "the extension is not as it was set"
    painted = [paint(page)] if opens else []
    context.close()
    return started, painted


def work(metrics: Sequence[dict[str, float]]) -> float:
    """Return how long the main thread has worked, in seconds."""
    return next(m["value"] for m in metrics if m["name"] == "TaskDuration")


def paint(page: Page) -> float:
    """Open the panel; return the seconds until its rows are on the screen."""
    page.locator(".jp-FleetStatus-button").wait_for()
    milliseconds: float = page.evaluate(OPEN, f"{NAME}:open-timeline")
    return milliseconds / 1000


if __name__ == "__main__":
    sys.exit(main())
