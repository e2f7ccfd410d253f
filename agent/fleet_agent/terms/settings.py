"""The owner's terms as they are written in the agent's settings."""

from __future__ import annotations

from dataclasses import dataclass

from fleet_agent.errors import SettingsError
from fleet_agent.terms.hours import HoursError, parse_hours
from fleet_agent.terms.judging import OwnerTerms
from fleet_contracts.amounts import AmountError, parse_bytes, parse_cores


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTerms:
    """The settings; an empty text is no limit."""

    max_cpu: str = ""
    max_memory: str = ""
    hours: str = ""
    not_while_used: bool = False
    idle_minutes: float = 10.0
    not_on_battery: bool = False
    drivers: tuple[str, ...] = ()


def read_terms(written: WrittenTerms) -> OwnerTerms:
    """Return what *written* means.

    Raises:
        SettingsError: a text in it means nothing; all of them are named.
    """
    faults = []
    cpu = memory = hours = None
    try:
        cpu = parse_cores(written.max_cpu) if written.max_cpu else None
    except AmountError as error:
        faults.append(f"max_cpu: {error}")
    try:
        memory = parse_bytes(written.max_memory) if written.max_memory else None
    except AmountError as error:
        faults.append(f"max_memory: {error}")
    try:
        hours = parse_hours(written.hours) if written.hours else None
    except HoursError as error:
        faults.append(f"hours: {error}")
    if faults:
        raise SettingsError("; ".join(faults))
    return OwnerTerms(
        cpu_milli=cpu,
        memory_bytes=memory,
        hours=hours,
        idle_seconds=written.idle_minutes * 60 if written.not_while_used else None,
        not_on_battery=written.not_on_battery,
        drivers=written.drivers,
    )
