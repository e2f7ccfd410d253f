"""The real clock and real chance."""

from __future__ import annotations

import secrets
import time
import uuid
from datetime import UTC, datetime


class SystemClock:
    """The time of day, as the operating system tells it."""

    def now(self) -> datetime:
        """Return now, aware and in UTC."""
        return datetime.now(UTC)


class RandomIds:
    """Identities from the operating system's randomness."""

    def workload(self) -> str:
        """Return a new workload's id: sortable by age, and not to be guessed."""
        milliseconds = int(time.time() * 1000)
        return f"w{milliseconds:011x}{secrets.token_hex(6)}"

    def allocation(self) -> str:
        """Return a new allocation's id."""
        return uuid.uuid4().hex

    def token(self) -> str:
        """Return a new secret of 256 bits."""
        return secrets.token_urlsafe(32)
