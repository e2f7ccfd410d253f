"""A failed test tells what its processes and its page said last, and no secret."""

from __future__ import annotations

import os
from pathlib import Path

from last_words import CHARACTERS, of_page, of_pages, of_processes


class _Page:
    """As much of a browser's page as is asked for."""

    url = "http://127.0.0.1/user/ada/lab?token=0123456789abcdef"

    def __init__(self, text: str | None) -> None:
        self._text = text

    def locator(self, _where: str) -> _Page:
        return self

    def inner_text(self, *, timeout: float) -> str:
        if self._text is None:
            raise RuntimeError(f"nothing within {timeout} ms")
        return self._text


def test_the_ends_of_recent_logs_are_told(tmp_path: Path) -> None:
    """Of the last lines, and of what was written since the test began."""
    fleet = tmp_path / "fleet0"
    fleet.mkdir()
    (tmp_path / "fleetcurrent").symlink_to(fleet)
    old, hub = fleet / "old.log", fleet / "hub.log"
    old.write_text("of another test")
    os.utime(old, (1_000, 1_000))
    secret = "Authorization: Fleet abcdefghijklmnop, ?token=0123456789abcdef&next=x"
    hub.write_text("x" * 9_000 + f"\nthe Hub is up\n{secret}\n")

    ((title, text),) = of_processes(tmp_path, since=5_000)

    assert title == "end of fleet0/hub.log"
    assert "the Hub is up" in text
    assert "next=x" in text
    assert "abcdefghijklmnop" not in text
    assert "0123456789abcdef" not in text
    assert len(text) <= CHARACTERS


def test_a_page_is_told_with_its_address_whatever_it_does() -> None:
    """By the name of its fixture; a page that cannot be read breaks no report."""
    ((title, text),) = of_pages({"page": _Page("Starting"), "running": object()})

    assert title == "what 'page' shows"
    assert "/user/ada/lab" in text
    assert "Starting" in text
    assert "0123456789abcdef" not in text
    assert "cannot be read" in of_page(_Page(None))
