"""When is a machine set aside on which starts go wrong?  Pure: from starts to a time.

A machine on which every start fails at once is always the freest one, so that the next
start goes there too: it would take the whole line.  What a profile or a user brings
along can fail anywhere, and says nothing of a machine; so what counts is in two minds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fleet_contracts.reasons import Reason
from fleet_hub.controller.records import Workload


WITHIN: Final = timedelta(minutes=10)
"""How close together starts go wrong that are told of a machine."""
ENOUGH: Final = 3
"""How many of them, each of another workload and with none between that went well."""
FIRST_REST: Final = timedelta(minutes=1)
"""How long a machine is set aside at first; twice as long each time after that."""
LONGEST_REST: Final = timedelta(hours=1)

_OF_THE_MACHINE: Final = frozenset(
    {
        Reason.AGENT_REJECTED,
        Reason.DISK_FULL,
        Reason.DRIVER_UNAVAILABLE,
        Reason.PORT_TAKEN,
        Reason.SANDBOX_MISSING,
    }
)
"""What no profile and no user brings along."""
_OF_EITHER: Final = frozenset(
    {
        Reason.ACCELERATOR_NOT_USED,
        Reason.CAPABILITIES_UNKNOWN,
        Reason.ENVIRONMENT_BROKEN,
        Reason.ENVIRONMENT_HASH_MISMATCH,
        Reason.PREPARE_FAILED,
        Reason.PREPARE_TIMEOUT,
        Reason.SERVER_EXITED,
        Reason.START_FAILED,
        Reason.START_TIMEOUT,
    }
)
"""What may be the profile's fault: more than one profile has to meet it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setback:
    """One start that went wrong before its server was ready."""

    workload: str
    user_id: int
    profile: str
    reason: Reason
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Setbacks:
    """What went wrong on a machine since a start there went well."""

    latest: tuple[Setback, ...] = ()
    times: int = 0
    """How often in a row it was set aside."""
    until: datetime | None = None
    """When it is tried again; None: it was never set aside."""

    def is_set_aside(self, now: datetime) -> bool:
        """Return whether nothing new is given to the machine."""
        return self.until is not None and now < self.until

    def set_aside_until(self, now: datetime) -> datetime | None:
        """Return until when; None: the machine takes work."""
        return self.until if self.is_set_aside(now) else None

    def after(self, setback: Setback) -> Setbacks:
        """Return what is known once *setback* happened too.

        Whatever was under way when the machine was set aside adds nothing.
        """
        if self.is_set_aside(setback.at) or not _counts(setback.reason):
            return self
        times = self.times if self._is_recent(setback.at) else 0
        latest = (
            *(
                earlier
                for earlier in self.latest
                if earlier.workload != setback.workload
                and setback.at - earlier.at <= WITHIN
            ),
            setback,
        )[-ENOUGH:]
        if not (times and setback.reason in _OF_THE_MACHINE) and not _is_bad(latest):
            return Setbacks(latest=latest, times=times, until=self.until)
        rest = min(FIRST_REST * 2**times, LONGEST_REST)
        return Setbacks(latest=latest, times=times + 1, until=setback.at + rest)

    def _is_recent(self, now: datetime) -> bool:
        return self.until is not None and now - self.until <= LONGEST_REST


def setback_of(record: Workload, reason: Reason, at: datetime) -> Setback:
    """Return that a start of *record* went wrong."""
    return Setback(
        workload=record.id,
        user_id=record.principal.user_id,
        profile=record.choice.profile,
        reason=reason,
        at=at,
    )


def _counts(reason: Reason) -> bool:
    return reason in _OF_THE_MACHINE or reason in _OF_EITHER


def _is_bad(latest: Iterable[Setback]) -> bool:
    """Return whether so many went wrong that it is neither one user's nor profile's."""
    several = list(latest)
    own = all(setback.reason in _OF_THE_MACHINE for setback in several)
    return (
        len(several) >= ENOUGH
        and len({setback.user_id for setback in several}) > 1
        and (own or len({setback.profile for setback in several}) > 1)
    )
