"""The agent's side of one connection, without any I/O.

One ``Conversation`` per connection: it says what may be said now, and judges what was
heard.  ``next_delay`` says how long to stay away after a connection has ended, and
``pages`` cuts an inventory.  ``link.py`` carries all of it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fleet_contracts.protocol import (
    INVENTORY_PAGE,
    PROTOCOL,
    Goodbye,
    Inventory,
    InventoryItem,
    ProtocolError,
    Report,
    ToAgent,
    Welcome,
    decode_to_agent,
)


SHORTEST_DELAY: Final = 0.2
LONGEST_DELAY: Final = 10.0
SLOW_DELAY: Final = 30.0
"""For what a person has to put right: a wrong token, another protocol."""
RESEND_SECONDS: Final = 30.0
"""A report that is not acknowledged for so long on a living link is sent again."""
WELCOME_SECONDS: Final = 30.0
"""A controller that does not answer ``hello`` for so long is left."""


class Phase(StrEnum):
    """How far a connection is."""

    GREETING = "greeting"
    LIVE = "live"
    OVER = "over"


class Ending(StrEnum):
    """Why a connection is over, as far as it decides what comes next."""

    LOST = "lost"
    """Not reached, cut off, or the controller makes way: come again soon."""
    DENIED = "denied"
    """The token was refused."""
    POSTPONED = "postponed"
    """Sent away, and invited to try later."""
    DISMISSED = "dismissed"
    """Sent away for good."""


class ViolationError(Exception):
    """The controller said what this protocol does not allow; the link must end."""


@dataclass(slots=True)
class Conversation:
    """What may be said and heard on one connection."""

    phase: Phase = Phase.GREETING
    goodbye: Goodbye | None = None

    def hear(self, text: str | bytes) -> ToAgent:
        """Return what the controller said, and remember what it means for the link.

        Raises:
            ViolationError: it is not understood, or not allowed now.
        """
        try:
            message = decode_to_agent(text)
        except ProtocolError as error:
            raise ViolationError(str(error)) from error
        if isinstance(message, Goodbye):
            self.phase, self.goodbye = Phase.OVER, message
        elif isinstance(message, Welcome):
            self._welcome(message)
        elif self.phase is not Phase.LIVE:
            raise ViolationError(f"{message.type} came before welcome")
        return message

    def _welcome(self, message: Welcome) -> None:
        if self.phase is not Phase.GREETING:
            raise ViolationError("welcome came twice")
        if message.protocol != PROTOCOL:
            raise ViolationError(
                f"the controller speaks protocol {message.protocol}, this agent "
                f"speaks {PROTOCOL}: bring both to the same release"
            )
        self.phase = Phase.LIVE

    def ending(self) -> Ending:
        """Return why the connection ended, judged from what was heard on it."""
        if self.goodbye is None or self.goodbye.code in _MAKES_WAY:
            return Ending.LOST
        return Ending.POSTPONED if self.goodbye.retry else Ending.DISMISSED


_MAKES_WAY = frozenset({"duplicate_link", "shutting_down"})
"""Goodbyes that pass by themselves: the old link dies, the controller comes back."""


def next_delay(failures: int, ending: Ending, *, chance: float) -> float:
    """Return for how many seconds to stay away.

    *failures* counts the connections in a row that came to nothing, from 1.  *chance*
    is a random number from 0 to 1: a thousand agents must not come back at once.
    """
    if ending is Ending.LOST:
        ceiling = min(SHORTEST_DELAY * (1 << min(failures, 16)), LONGEST_DELAY)
    else:
        ceiling = SLOW_DELAY
    return max(SHORTEST_DELAY, ceiling * (0.5 + chance / 2))


def pages(items: Sequence[InventoryItem]) -> Iterator[Inventory]:
    """Yield *items* as inventory messages; the last one is marked, also when empty."""
    for start in range(0, max(len(items), 1), INVENTORY_PAGE):
        end = start + INVENTORY_PAGE
        yield Inventory(items=tuple(items[start:end]), last=end >= len(items))


@dataclass(slots=True)
class Resend:
    """Tells when reports that stay unacknowledged on a living link go out again."""

    sent_at: float = 0.0
    oldest: tuple[str, int, int] | None = None

    def is_due(self, unacknowledged: Sequence[Report], *, now: float) -> bool:
        """Return whether to send all of *unacknowledged* again at *now*."""
        oldest = None
        if unacknowledged:
            first = unacknowledged[0]
            oldest = first.allocation, first.epoch, first.seq
        if oldest is None or oldest != self.oldest:
            self.oldest, self.sent_at = oldest, now
            return False
        if now - self.sent_at < RESEND_SECONDS:
            return False
        self.sent_at = now
        return True
