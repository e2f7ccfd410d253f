"""Which devices of a machine do programs outside the fleet use, as its agent says?

The agent tells them from a desktop's pictures and from its own work.  Here is only
seen to it that amounts that waver wake nobody.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from fleet_contracts.capabilities import Usage
from fleet_hub.controller.model import Presence


_MIB: Final = 1024**2
_STEP: Final = 1024**3
"""What is told is rounded up to it: nobody needs it to the byte."""


def foreign_use(
    presence: Presence, usage: Usage, now: datetime, *, stale: timedelta
) -> tuple[tuple[str, int], ...]:
    """Return the devices that others use, by UUID, with the bytes that those take.

    What is repeated for longer than *stale* says nothing of the devices any more.
    """
    observed_at = presence.observed_at
    if observed_at is None or now - observed_at >= stale:
        return ()
    earlier = dict(presence.used_outside)
    return tuple(
        sorted(
            (device.uuid, _steady(device.foreign_mib * _MIB, earlier.get(device.uuid)))
            for device in usage.devices
            if device.uuid is not None and device.foreign_mib
        )
    )


def _steady(used: int, earlier: int | None) -> int:
    """Return *used* in whole steps; the *earlier* number while it is still about that."""
    if earlier is not None and abs(used - earlier) <= _STEP:
        return earlier
    return -(-used // _STEP) * _STEP
