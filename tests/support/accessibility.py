"""What a machine can tell of WCAG 2.2 AA, and pictures of it for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from lab_browser import photograph
from playwright.sync_api import Page


AXE: Final = Path(__file__).parents[2] / "server_ext/node_modules/axe-core/axe.min.js"
AXE_OPTIONS: Final = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
}
NARROWEST: Final = 320
"""Pixels to which WCAG wants a page to shrink without scrolling sideways."""


def violations(page: Page, *where: str) -> list[str]:
    """Return what axe finds wrong in the elements that *where* selects."""
    if not page.evaluate("() => 'axe' in window"):
        # By the debugger, because a page's own policy forbids a foreign script.
        session = page.context.new_cdp_session(page)
        script = AXE.read_text(encoding="utf-8")
        session.send("Runtime.evaluate", {"expression": f"{script};0"})
        session.detach()
    found: list[dict[str, Any]] = page.evaluate(
        "async ([where, options]) => (await axe.run({include: where}, options)).violations",
        [list(where) or ["html"], AXE_OPTIONS],
    )
    return [
        f"{violation['id']}: {node['html']} {node['failureSummary']}"
        for violation in found
        for node in violation["nodes"]
    ]


FAINT: Final = """
where => {
  const context = document.createElement("canvas").getContext("2d");
  // A browser may write a colour in any space: what is painted is in one.
  const painted = (colour, over) => {
    context.fillStyle = `rgb(${over})`; context.fillRect(0, 0, 1, 1);
    context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (colour) => colour.map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const contrast = (one, other) => {
    const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  const ground = (element) => element
    ? painted(getComputedStyle(element).backgroundColor, ground(element.parentElement))
    : [255, 255, 255];
  const controls = "input:not([type=hidden]), select, textarea, button, a.btn, a.button";
  return [...document.querySelectorAll(where)]
    .flatMap((part) => [...part.querySelectorAll(controls)])
    .filter((each) => !each.disabled && each.checkVisibility() && each.offsetWidth)
    // What has words of its own is found by them.
    .filter((each) => !["BUTTON", "A"].includes(each.tagName) || !each.textContent.trim())
    .map((each) => {
      const around = ground(each.parentElement);
      const style = getComputedStyle(each);
      const edge = painted(style.borderTopColor, around);
      const best = Math.max(contrast(edge, around), contrast(ground(each), around));
      return [best, `${each.outerHTML.slice(0, 120)} stands out by ${best.toFixed(2)}`];
    })
    .filter(([best]) => best < 3).map(([, text]) => text);
}
"""
"""Finds fields whose edge is fainter than WCAG wants; axe looks at texts alone."""
LONGEST_PICTURE: Final = 4000


def faint(page: Page, *where: str) -> list[str]:
    """Return the fields in what *where* selects that are too faint to be found."""
    found: list[str] = page.evaluate(FAINT, ", ".join(where) or "body")
    return found


def is_short(page: Page) -> bool:
    """Whether the whole of the page makes a picture that one can look at."""
    height = page.evaluate("document.documentElement.scrollHeight")
    return bool(height <= LONGEST_PICTURE)


def scrolls_sideways(page: Page) -> bool:
    """Whether something is wider than the window."""
    width = "[document.documentElement.scrollWidth, innerWidth]"
    scrolled, inner = page.evaluate(width)
    return bool(scrolled > inner)


def hub_theme(page: Page, theme: str) -> None:
    """Give a page of the Hub its light or its dark theme."""
    page.evaluate(f"document.documentElement.dataset.bsTheme = '{theme}'")


def browser_theme(page: Page, theme: str) -> None:
    """Let the browser ask for a light or a dark page."""
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")


def faults(
    page: Page, name: str, *where: str, theme: Callable[[Page, str], None]
) -> list[str]:
    """Return what is wrong with the page in every look; keep a picture of each.

    Light, dark and forced colours; narrow; and from right to left.
    """
    wrong: list[str] = []
    # Half-way through a change of colours nothing can be measured.
    page.emulate_media(reduced_motion="reduce")
    for look in ("light", "dark"):
        theme(page, look)
        photograph(page, f"{name}-{look}", whole=is_short(page))
        wrong += [f"{look}: {each}" for each in violations(page, *where)]
        wrong += [f"{look}: {each}" for each in faint(page, *where)]
    theme(page, "light")
    page.emulate_media(forced_colors="active")
    photograph(page, f"{name}-forced-colours", whole=is_short(page))
    wrong += [f"forced colours: {each}" for each in violations(page, *where)]
    page.emulate_media(forced_colors="none")
    moving = page.evaluate("document.getAnimations().length")
    wrong += [f"{moving} things move"] if moving else []
    size = page.viewport_size
    page.set_viewport_size({"width": NARROWEST, "height": 800})
    for direction in ("ltr", "rtl"):
        page.evaluate(f"document.documentElement.dir = '{direction}'")
        photograph(page, f"{name}-narrow-{direction}", whole=is_short(page))
        wrong += [f"{direction}: wider than the window"] * scrolls_sideways(page)
    page.evaluate("document.documentElement.dir = 'ltr'")
    page.emulate_media(reduced_motion="no-preference")
    if size is not None:
        page.set_viewport_size(size)
    return wrong
