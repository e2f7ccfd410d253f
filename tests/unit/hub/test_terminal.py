"""Text in a terminal: as wide as it is, and never more than text."""

from __future__ import annotations

import io

import pytest

from fleet_hub.terminal import Column, Style, cells, table, width, wrapped


COLUMNS = (
    Column(title="#", is_number=True),
    Column(title="User"),
    Column(title="Why", is_prose=True),
)
ROWS = [
    ("1", "alice", "all suitable devices are taken, and it clears when a holder ends"),
    ("12", "bob", "short"),
]


@pytest.mark.parametrize("room", [120, 60, 45, 30, 20])
def test_a_table_fits_whatever_room_there_is(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """Prose is wrapped first; where that is not enough each row becomes a list."""
    monkeypatch.setenv("COLUMNS", str(room))
    text = table(COLUMNS, ROWS, Style())
    assert all(cells(line) <= room for line in text.splitlines()), text
    for word in ("alice", "bob", "short", "holder"):
        assert word in text


def test_numbers_stand_under_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right-aligned, with their heading."""
    monkeypatch.setenv("COLUMNS", "100")
    heading, first, second = table(COLUMNS, ROWS, Style()).splitlines()
    assert heading.startswith(" #  User")
    assert first.startswith(" 1  alice")
    assert second.startswith("12  bob")


def test_wide_characters_take_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name in any script leaves the table straight."""
    monkeypatch.setenv("COLUMNS", "100")
    text = table(COLUMNS, [("1", "田中", "x"), ("2", "anna", "y")], Style())
    _, first, second = text.splitlines()
    assert cells(first.split("x")[0]) == cells(second.split("y")[0])
    assert cells("e\N{COMBINING ACUTE ACCENT}") == 1


def test_nothing_from_outside_can_steer_the_terminal() -> None:
    """Control and direction characters are shown as what they are not."""
    text = table(COLUMNS, [("1", "a\x1b[2Jb\r\n", "c\u202ed")], Style())
    assert "\x1b" not in text
    assert "\r" not in text
    assert "\u202e" not in text
    assert "\x1b" not in wrapped("x\x1b]0;title\x07", 40)


def test_weight_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a pipe, not with NO_COLOR, not in a dumb terminal."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Style.of(Terminal()).bold("x") != "x"
    assert Style.of(io.StringIO()).bold("x") == "x"
    monkeypatch.setenv("TERM", "dumb")
    assert Style.of(Terminal()).faint("x") == "x"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert Style.of(Terminal()).bold("x") == "x"


def test_a_line_is_never_too_long_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """However wide the terminal is, and however narrow."""
    monkeypatch.setenv("COLUMNS", "500")
    assert width() == 110
    monkeypatch.setenv("COLUMNS", "3")
    assert width() == 20
