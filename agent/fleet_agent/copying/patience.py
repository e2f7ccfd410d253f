"""How long a start waits for files of which nothing comes, its machine held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fleet_agent.copying.errors import CopyError
from fleet_contracts.amounts import format_seconds
from fleet_contracts.reasons import Explanation, Reason


PATIENCE_SECONDS: Final = 300.0
"""For a machine that was switched off: others wait for what this start holds."""
TELL_AGAIN_SECONDS: Final = 60.0


class Patience:
    """Of one start, from the last time that anything came."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Wait from now on."""
        self._clock = clock
        self._since = clock()
        self._told_at: float | None = None

    def renew(self) -> None:
        """Wait anew from now on."""
        self._since = self._clock()

    def judge(self) -> Explanation | None:
        """Return what to tell of one more try in vain; None: it was told just now.

        Raises:
            CopyError: it is enough.
        """
        now = self._clock()
        if now - self._since >= PATIENCE_SECONDS:
            raise CopyError(
                "the machine with the files stayed away",
                detail="the machine with them sent nothing for "
                f"{format_seconds(int(PATIENCE_SECONDS))}",
            )
        if self._told_at is not None and now - self._told_at < TELL_AGAIN_SECONDS:
            return None
        self._told_at = now
        return Explanation(
            reason=Reason.COPY_SOURCE_AWAY,
            requested=int(PATIENCE_SECONDS),
            unit="seconds",
        )
