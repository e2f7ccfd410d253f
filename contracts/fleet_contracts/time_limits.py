"""How long a server may run, how long it may compute nothing, and what set that."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from fleet_contracts.base import Contract
from fleet_contracts.workloads import Seconds


class SetBy(StrEnum):
    """Which entry of the catalog set a limit."""

    CLASS = "class"
    PROFILE = "profile"


class TimeLimit(Contract):
    """One limit that is in force."""

    seconds: Seconds
    set_by: SetBy | None = None
    """The entry with the shorter one of two; None: the catalog has changed since."""


class TimeLimits(Contract):
    """The limits of one choice; None: there is none."""

    limit: TimeLimit | None = None
    """From when it is ready."""
    idle_limit: TimeLimit | None = None
    """While nothing is computed."""


NO_LIMITS: Final = TimeLimits()


def shorter(by_class: float | None, by_profile: float | None) -> TimeLimit | None:
    """Return the limit that counts of a class's and a profile's, and whose it is."""
    if by_profile is not None and (by_class is None or by_profile < by_class):
        return TimeLimit(seconds=by_profile, set_by=SetBy.PROFILE)
    if by_class is not None:
        return TimeLimit(seconds=by_class, set_by=SetBy.CLASS)
    return None


def in_force(seconds: float | None, offered: TimeLimit | None) -> TimeLimit | None:
    """Return a limit that something runs under, whatever is *offered* by now."""
    if seconds is None:
        return None
    same = offered is not None and offered.seconds == seconds
    return offered if same else TimeLimit(seconds=seconds)
