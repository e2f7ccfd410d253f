"""Text for people in a terminal: as wide as it is, and readable when it is narrow.

Nothing that comes from outside reaches the terminal as it is: ``machine_words.plain``
takes control characters out of every cell.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from fleet_hub.machine_words import plain


_WIDEST: Final = 110
"""Longer lines are hard to read, however wide the terminal is."""
_NARROWEST: Final = 20
_LEAST_COLUMN: Final = 12
_GAP: Final = "  "
_BOLD: Final = "\x1b[1m"
_FAINT: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"


def width() -> int:
    """Return how many columns a line may have."""
    return max(_NARROWEST, min(shutil.get_terminal_size().columns, _WIDEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Whether weight may be used; words and signs carry the meaning without it."""

    is_on: bool = False

    @classmethod
    def of(cls, stream: TextIO = sys.stdout) -> Style:
        """Return what suits *stream*: no codes in files, pipes, or where unwanted."""
        unwanted = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        return cls(is_on=stream.isatty() and not unwanted)

    def bold(self, text: str) -> str:
        """Return *text* heavier."""
        return f"{_BOLD}{text}{_PLAIN}" if self.is_on else text

    def faint(self, text: str) -> str:
        """Return *text* lighter."""
        return f"{_FAINT}{text}{_PLAIN}" if self.is_on else text


def cells(text: str) -> int:
    """Return how many columns *text* takes: wide characters take two."""
    return sum(
        0
        if unicodedata.combining(sign)
        else 1 + (unicodedata.east_asian_width(sign) in {"W", "F"})
        for sign in text
    )


def wrapped(text: str, columns: int, *, indent: str = "", hanging: str = "") -> str:
    """Return *text* as lines of at most *columns*, the later ones after *hanging*."""
    return textwrap.fill(
        plain(text, 2000),
        max(columns, _NARROWEST),
        initial_indent=indent,
        subsequent_indent=hanging or indent,
        break_on_hyphens=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    title: str
    is_number: bool = False
    is_prose: bool = False
    """It gives way where there is little room: its text is wrapped."""


def table(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], style: Style
) -> str:
    """Return a table, or where that is too wide each row as a short list."""
    texts = [[plain(cell, 2000) for cell in row] for row in rows]
    sizes = [
        max(cells(column.title), *(cells(row[place]) for row in texts), 1)
        for place, column in enumerate(columns)
    ]
    room = width() - len(_GAP) * (len(columns) - 1)
    prose = [place for place, column in enumerate(columns) if column.is_prose]
    over = sum(sizes) - room
    for place in sorted(prose, key=lambda place: -sizes[place]):
        if over > 0:
            given = min(over, max(0, sizes[place] - 2 * _LEAST_COLUMN))
            sizes[place] -= given
            over -= given
    if over > 0:
        return "\n".join(_stacked(columns, texts, style))
    lines = [_line(columns, [column.title for column in columns], sizes)]
    lines = [style.bold(lines[0])]
    for row in texts:
        lines += _row(columns, row, sizes)
    return "\n".join(lines)


def _row(
    columns: Sequence[Column], row: Sequence[str], sizes: Sequence[int]
) -> Iterator[str]:
    parts = [
        textwrap.wrap(cell, size, break_on_hyphens=False) if column.is_prose else [cell]
        for column, cell, size in zip(columns, row, sizes, strict=True)
    ]
    for number in range(max(1, *map(len, parts))):
        here = [part[number] if number < len(part) else "" for part in parts]
        yield _line(columns, here, sizes)


def _line(columns: Sequence[Column], texts: Sequence[str], sizes: Sequence[int]) -> str:
    padded = []
    for column, text, size in zip(columns, texts, sizes, strict=True):
        space = " " * (size - cells(text))
        padded.append(space + text if column.is_number else text + space)
    return _GAP.join(padded).rstrip()


def _stacked(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], style: Style
) -> Iterator[str]:
    """Yield each row as its first cell with the others beneath."""
    for number, row in enumerate(rows):
        if number:
            yield ""
        yield style.bold(wrapped(row[0], width()))
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                label = f"  {column.title.lower()}: "
                yield wrapped(cell, width(), indent=label, hanging="    ")
