"""Looks at the owner's terms again and again; nothing is ended by them."""

from __future__ import annotations

import asyncio
import platform
from dataclasses import dataclass, field
from pathlib import Path

from fleet_agent.probes.presence import PresenceProbe
from fleet_agent.probes.settings import DetectSettings
from fleet_agent.terms.judging import Circumstances, OwnerTerms, judge
from fleet_contracts.capabilities import OwnerTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsWatch:
    """What the owner lends, and how to find out whether that is met."""

    terms: OwnerTerms
    drained: Path
    """A file that is there while the owner wants nothing new to start."""
    detection: DetectSettings
    """Whom to ask, and what time it is."""
    system: str = field(default_factory=lambda: platform.system().lower())

    async def look(self) -> tuple[OwnerTerm, ...]:
        """Return the terms as they are met now; never raises."""
        if self.terms.asks_presence:
            return await asyncio.to_thread(self._look)
        # A clock and a file: a thread would only cost memory.
        return self._look()

    def _look(self) -> tuple[OwnerTerm, ...]:
        now, terms = self.detection.now, self.terms
        probe = PresenceProbe(ask=self.detection.ask, system=self.system, now=now)
        return judge(
            terms,
            Circumstances(
                now=now(),
                idle_seconds=(
                    probe.idle_seconds() if terms.idle_seconds is not None else None
                ),
                on_battery=probe.on_battery() if terms.not_on_battery else None,
                drained=self.drained.exists(),
            ),
        )
