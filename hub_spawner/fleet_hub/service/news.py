"""Telling open pages that something has changed: that it has, and never what.

A page knows the number that held when it was made.  Over one WebSocket it hears the
number of now, at once and after each change, and reads itself again where the two
differ.  So nothing is lost with a link, and whoever hears nothing asks now and then.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable


class News:
    """The number of what there is to see, and who wants to hear of another one."""

    def __init__(self) -> None:
        """Begin unlike every controller before."""
        self._life = secrets.token_hex(4)
        self._count = 0
        self._readers: set[Callable[[], None]] = set()

    @property
    def number(self) -> str:
        """What is different after each change."""
        return f"{self._life}-{self._count}"

    def note(self) -> None:
        """Say that something may have changed."""
        self._count += 1
        for reader in tuple(self._readers):
            reader()

    def join(self, reader: Callable[[], None]) -> None:
        """Have *reader* called after each change."""
        self._readers.add(reader)

    def leave(self, reader: Callable[[], None]) -> None:
        """Call *reader* no more."""
        self._readers.discard(reader)
