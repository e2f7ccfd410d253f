"""Do programs outside the fleet use a GPU of this machine?  Told steadily.

A device that the fleet holds is used by the fleet, and so it is for a moment after its
end, until the driver has given everything back.  Of any other, one look may meet what
passes - somebody's ``nvidia-smi``, the agent's own look at torch - so the second one
decides.  A device that was found in use has to stay unused for a while, and for longer
each time that it is used again soon: work must not be sent there again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from fleet_contracts.capabilities import DeviceUsage, Usage
from fleet_contracts.device_use import used_by_programs


LINGER_SECONDS: Final = 60.0
"""How long what one of ours had may still be seen after its end."""
FIRST_QUIET_SECONDS: Final = 20.0
LONGEST_QUIET_SECONDS: Final = 1800.0
FORGIVEN_SECONDS: Final = 3600.0
"""After so long without use a device begins anew."""
STALE_SECONDS: Final = 300.0
"""An older word is none."""


@dataclass(slots=True)
class _Seen:
    """What is known of one device."""

    at: float
    mib: int | None = None
    """The verdict; None: nobody knows."""
    suspected: bool = False
    """One look found it in use."""
    quiet_since: float | None = None
    quiet_seconds: float = 0.0
    """How long it has to be unused before it is given again."""
    last_used: float | None = None


class ForeignUse:
    """Judges the devices of this machine, look by look."""

    def __init__(
        self, *, held: Callable[[], Iterable[str]], clock: Callable[[], float]
    ) -> None:
        """*held* are the devices that the fleet holds now; *clock* only goes on."""
        self._held = held
        self._clock = clock
        self._was_held: set[str] = set(held())
        self._released: dict[str, float] = {}
        self._convicted: set[str] = set()
        self._seen: dict[str, _Seen] = {}

    def note(self) -> None:
        """Something of the fleet may have begun or ended."""
        held, now = set(self._held()), self._clock()
        ended = self._was_held - held
        self._released |= dict.fromkeys(ended - self._convicted, now)
        self._convicted -= ended
        self._was_held = held

    def just_left(self, uuid: str) -> bool:
        """Whether one of ours ended on a device a moment ago."""
        self.note()
        at = self._released.get(uuid)
        return at is not None and self._clock() - at < LINGER_SECONDS

    def is_ours(self, uuid: str) -> bool:
        """Whether what is seen of a device is one of ours, or may be left by it."""
        is_left = self.just_left(uuid)
        return (uuid in self._was_held and uuid not in self._convicted) or is_left

    @property
    def is_suspicious(self) -> bool:
        """Whether a second look, soon, would decide something."""
        return any(seen.suspected and not seen.mib for seen in self._seen.values())

    def see(self, devices: Iterable[DeviceUsage]) -> None:
        """Take one look at the devices into account."""
        for device in devices:
            if device.uuid is not None and not self.is_ours(device.uuid):
                self._judge(device.uuid, used_by_programs(device))

    def convict(self, uuid: str, mib: int) -> None:
        """Know that a device, which was about to be used by ours, is used by others."""
        seen = self._seen.setdefault(uuid, _Seen(at=self._clock()))
        seen.at, seen.suspected = self._clock(), True
        self._found(seen, mib)
        # It was held for the one that is refused, who has not touched it.
        self._released.pop(uuid, None)
        self.note()
        self._convicted |= {uuid} & self._was_held

    def used_mib(self, uuid: str) -> int | None:
        """Return what others use of a device; 0: nothing, None: nobody knows."""
        seen = self._seen.get(uuid)
        if seen is None or self._clock() - seen.at >= STALE_SECONDS:
            return None
        return None if self.is_ours(uuid) else seen.mib

    def in_use(self) -> dict[str, int]:
        """Return the devices that others use, with the MiB that those take."""
        known = {uuid: self.used_mib(uuid) for uuid in self._seen}
        return {uuid: mib for uuid, mib in known.items() if mib}

    def told(self, usage: Usage | None) -> Usage | None:
        """Return *usage* with what is known of others' use."""
        if usage is None or not usage.devices:
            return usage
        devices = tuple(
            device
            if device.uuid is None
            else device.model_copy(update={"foreign_mib": self.used_mib(device.uuid)})
            for device in usage.devices
        )
        return usage.model_copy(update={"devices": devices})

    def _judge(self, uuid: str, mib: int | None) -> None:
        if mib is None:
            # What was known stays known, until it is too old to be.
            return
        seen = self._seen.setdefault(uuid, _Seen(at=self._clock()))
        seen.at = self._clock()
        if mib and (seen.suspected or seen.mib):
            self._found(seen, mib)
        elif mib:
            seen.suspected = True
        else:
            self._rest(seen)

    def _found(self, seen: _Seen, mib: int) -> None:
        now = self._clock()
        if not seen.mib:
            again = seen.last_used is not None and (
                now - seen.last_used < FORGIVEN_SECONDS
            )
            seen.quiet_seconds = (
                min(seen.quiet_seconds * 2, LONGEST_QUIET_SECONDS)
                if again
                else FIRST_QUIET_SECONDS
            )
        seen.mib, seen.last_used, seen.quiet_since = mib, now, None

    def _rest(self, seen: _Seen) -> None:
        seen.suspected = False
        if not seen.mib:
            seen.mib = 0
            return
        if seen.quiet_since is None:
            seen.quiet_since = self._clock()
        if self._clock() - seen.quiet_since >= seen.quiet_seconds:
            seen.mib, seen.quiet_since = 0, None
