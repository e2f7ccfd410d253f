"""What a detection needs to know from outside: nothing here can claim hardware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fleet_agent.probes.flights import Flights
from fleet_agent.probes.readers import ask_machine
from fleet_agent.probes.tools import Ask
from fleet_contracts.workloads import DriverName


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A built environment of workloads: its ref in the catalog, and its Python."""

    ref: str
    interpreter: str


FindEnvironments = Callable[[], Awaitable[tuple[Environment, ...]]]


@dataclass(slots=True)
class Memory:
    """What one detection remembers for the next.

    Keep one object for the life of the process: it holds the probes that are stuck,
    and what torch said, which is worth asking again only when something changed.
    """

    flights: Flights = field(default_factory=Flights)
    torch: dict[Any, Any] = field(default_factory=dict)


def always() -> bool:
    """Return that it is so."""
    return True


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectSettings:
    """The parameters of ``detect`` and ``detect_fast``."""

    state_dir: str
    """Free disk is that of the file system which holds it."""
    environments: tuple[Environment, ...] = ()
    """Environments that are there from the start; torch in any other is unknown."""
    find_environments: FindEnvironments | None = None
    """Returns those that were built since; asked at each detection."""
    drivers: tuple[DriverName, ...] = (DriverName.NATIVE,)
    """The drivers that the agent was built with and may use."""
    limits: Mapping[DriverName, bool | None] = field(default_factory=dict)
    """Which of them keep a workload to its class; what is absent is unknown."""
    environments_of: Mapping[DriverName, Callable[[], tuple[str, ...] | None]] = field(
        default_factory=dict
    )
    """Returns the refs that a driver can run; absent or None is any."""
    engine_host: str | None = None
    """Where the Docker driver's engine answers; None: there is no such driver."""
    can_keep_in: bool | None = None
    """Whether the agent can keep containers out of private networks; None: it need not."""
    unsandboxed: bool = False
    """The machine's owner allowed native runs without a sandbox."""
    labels: Mapping[str, str] = field(default_factory=dict)
    advertise_address: str | None = None
    """None: the address of the default route."""
    torch: bool = True
    """Ask torch; it is the one probe that takes seconds."""
    gpu_is_free: Callable[[], bool] = always
    """Whether torch may try a GPU that two programs must not compute on; what it said
    before still counts."""
    ask: Ask = ask_machine
    now: Callable[[], datetime] = _now
    memory: Memory = field(default_factory=Memory)
