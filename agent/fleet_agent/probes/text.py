"""Reading text that no specification holds still: lines and cells.

The rules are about forms, not about known outputs: what is not a value of the
expected form is unknown, and what is not a row is a warning.
"""

from __future__ import annotations

import re
from typing import Final


_UNKNOWN: Final = re.compile(
    r"\[.*\]|\(null\)|n\.?/?a\.?|none|null|nan|not (supported|available|found|applicable)"
    r"|unknown( error)?|err!|-+|\?+|",
    re.IGNORECASE,
)


_LONGEST_LINE: Final = 16 * 1024


def lines(text: str) -> list[str]:
    """Return *text*'s lines: any line end, no byte-order mark, no NUL, no blanks.

    An endless line is cut: no tool's row is that long, and patterns stay quick.
    """
    cleaned = text.replace("\x00", "").replace("\ufeff", "")
    # str.splitlines would also break at form feeds inside a name.
    return [
        line[:_LONGEST_LINE].rstrip()
        for line in re.split(r"\r\n|\r|\n", cleaned)
        if line.strip()
    ]


def known(cell: object) -> str | None:
    """Return *cell* without its padding, or None for any spelling of "unknown"."""
    if not isinstance(cell, str):
        return None
    stripped = cell.strip()
    return None if _UNKNOWN.fullmatch(stripped) else stripped


def positive(cell: object) -> int | None:
    """Return a whole number above zero; 0 is how several tools spell "unknown"."""
    value = known(str(cell)) if isinstance(cell, int) else known(cell)
    if isinstance(cell, bool) or value is None or not re.fullmatch(r"\d{1,18}", value):
        return None
    return int(value) or None


def shortened(text: str, limit: int = 300) -> str:
    """Return *text* as a warning: one line, not endless."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}…"
