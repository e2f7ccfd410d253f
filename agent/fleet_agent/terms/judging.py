"""Are the owner's terms met?  Pure: from the terms and what was seen to a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from fleet_agent.terms.hours import Hours
from fleet_contracts.capabilities import Observed, Origin, OwnerTerm
from fleet_contracts.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerTerms:
    """What the machine's owner lends, and when; None: without limit."""

    cpu_milli: int | None = None
    memory_bytes: int | None = None
    hours: Hours | None = None
    idle_seconds: float | None = None
    """Only after the owner has left it alone for so long."""
    not_on_battery: bool = False
    drivers: tuple[str, ...] = ()
    """The ways of running work that the owner allows; empty: nobody asked."""

    @property
    def asks_presence(self) -> bool:
        """Whether somebody must look at keyboard, mouse and mains."""
        return self.idle_seconds is not None or self.not_on_battery


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What was seen of the machine just now; None is unknown."""

    now: datetime
    idle_seconds: float | None = None
    on_battery: bool | None = None
    drained: bool = False
    """Its owner told the agent to take nothing new."""


def judge(terms: OwnerTerms, seen: Circumstances) -> tuple[OwnerTerm, ...]:
    """Return each term of *terms*, met or not, the gravest first."""
    return tuple(_terms(terms, seen))


def _terms(terms: OwnerTerms, seen: Circumstances) -> Iterator[OwnerTerm]:
    observed = Observed(
        origin=Origin.LABEL, source="configuration", observed_at=seen.now
    )
    if seen.drained:
        yield OwnerTerm(
            name="drain",
            met=False,
            reason=Reason.DRAINING,
            text="fleet-agent drain",
            observed=observed,
        )
    if terms.hours is not None:
        open_now, until = terms.hours.at(seen.now)
        yield OwnerTerm(
            name="hours",
            met=open_now,
            reason="ok" if open_now else Reason.OUTSIDE_HOURS,
            until=until,
            text=terms.hours.text,
            observed=observed,
        )
    if terms.idle_seconds is not None:
        yield _presence(terms.idle_seconds, seen.idle_seconds, observed)
    if terms.not_on_battery:
        yield _power(seen.on_battery, observed)
    if terms.drivers:
        yield OwnerTerm(
            name="drivers", text=", ".join(terms.drivers), observed=observed
        )
    for name, amount, unit in (
        ("cpu", terms.cpu_milli, "milli_cores"),
        ("memory", terms.memory_bytes, "bytes"),
    ):
        if amount is not None:
            yield OwnerTerm(name=name, amount=amount, unit=unit, observed=observed)


def _presence(wanted: float, idle: float | None, observed: Observed) -> OwnerTerm:
    met = None if idle is None else idle >= wanted
    reasons = {None: Reason.PRESENCE_UNKNOWN, False: Reason.OWNER_AT_WORK, True: "ok"}
    return OwnerTerm(
        name="presence",
        met=met,
        reason=reasons[met],
        text=f"after {wanted / 60:g} minutes without its owner",
        observed=observed,
    )


def _power(on_battery: bool | None, observed: Observed) -> OwnerTerm:  # noqa: FBT001 - a fact's value
    met = None if on_battery is None else not on_battery
    return OwnerTerm(
        name="power",
        met=met,
        # Unknown is as good as no: an empty battery cannot be taken back.
        reason="ok" if met else Reason.ON_BATTERY,
        text="not on its battery",
        observed=observed,
    )
