"""Explanations in words, and what was put into words a moment ago."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from fleet_contracts.language import language, speaks_of_another
from fleet_contracts.reasons import Explanation
from fleet_contracts.sentences import remedy, sentence
from fleet_hub.explaining.document import Told
from fleet_hub.scheduling.likely_ends import Likelihood, with_ends


MOST: Final = 4000
"""So many are kept: some tens of megabytes."""


def told(explanation: Explanation, now: datetime) -> Told:
    """Return *explanation* as a code and in words; times of the same day without it."""
    return Told(
        explanation=explanation,
        kind=explanation.kind,
        sentence=sentence(explanation, now=now),
        remedy=remedy(explanation.reason),
    )


class RecentWords:
    """What was said of explanations that come again as the same object.

    The nearest machines are told to everybody who waits for the same.  They may be
    asked for from any thread.
    """

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._said: dict[object, tuple[Explanation, Told]] = {}

    def told(
        self,
        explanation: Explanation,
        ends: Sequence[Likelihood | None],
        now: datetime,
    ) -> Told:
        """Return *explanation* with the likely *ends* of its holders, as ``told`` does."""
        # All that the words depend on: of the moment only which day it is.
        spoken = language().tag, speaks_of_another(), now.date()
        key = (id(explanation), *ends, *spoken)
        found = self._said.get(key)
        if found is None:
            if len(self._said) >= MOST:
                self._said.clear()
            # It is kept with them: its identity is of the key.
            found = explanation, told(with_ends(explanation, ends), now)
            self._said[key] = found
        return found[1]
