"""The admission timeline: the append-only record of what happened to a workload.

The document is what every page, panel and export shows.  It carries codes and
numbers; no driver ref, no token, no other user's name that the privacy setting hides.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from fleet_contracts.allocations import Phase, State
from fleet_contracts.base import Contract
from fleet_contracts.reasons import Explanation
from fleet_contracts.time_limits import NO_LIMITS, TimeLimits


SCHEMA = "jupyterhub-fleet/timeline/v1"


class TimelineKind(StrEnum):
    """What an entry tells."""

    ASKED = "asked"
    WAITING = "waiting"
    PARKED = "parked"
    """The Hub let go of the start; the place in the line is kept."""
    PLACED = "placed"
    PREPARING = "preparing"
    PROGRESS = "progress"
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    REFUSED = "refused"
    SILENT = "silent"
    RETURNED = "returned"
    NOTE = "note"
    """A limit in force or a fact worth telling, such as the Metal reservation."""


class Progress(Contract):
    """How far a step is, in its own unit."""

    step: Annotated[str, Field(max_length=100)]
    """A stable slug, such as ``install_packages`` or ``verify_environment``."""
    done: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    total: Annotated[int, Field(ge=0, lt=1 << 63)] | None = None
    """None: nobody knows."""
    unit: Annotated[str, Field(max_length=50)] = "steps"


class TimelineEvent(Contract):
    """One change in a workload's admission, in the order of *seq*."""

    seq: Annotated[int, Field(ge=1)]
    generation: Annotated[int, Field(ge=1)]
    at: AwareDatetime
    kind: TimelineKind
    state: State
    actor: str = "controller"
    """Who made it happen: controller, agent, user, admin, hub."""
    machine: str | None = None
    explanation: Explanation | None = None
    progress: Progress | None = None


class LikelyStart(Contract):
    """Half of all similar starts come by *early*, nine of ten by *late*."""

    early: AwareDatetime
    late: AwareDatetime
    samples: Annotated[int, Field(ge=1)]
    """How many similar waits that is said from."""


class Limits(Contract):
    """The limits in force."""

    starts_by: AwareDatetime | None = None
    """The promise, while it waits; None: no time is known."""
    likely: LikelyStart | None = None
    """None: no time is promised, or too few waits went like this one so far."""
    longer_than_usual: bool = False
    """It waits for longer than was said at first to be likely for nine in ten."""

    cpu_milli: int | None = None
    memory_bytes: int | None = None
    devices: int = 0
    metal_reserved: bool = False
    ends_at: AwareDatetime | None = None
    time_limits: TimeLimits = NO_LIMITS
    """How long it may run or rest, told from the beginning."""
    idle_ends: AwareDatetime | None = None
    """When the idle limit ends it; None: it has none, is at work, or nobody knows."""


class Timeline(Contract):
    """The whole document, as of one moment."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    as_of: AwareDatetime
    workload: str
    generation: int
    user: str
    server: str
    profile: str | None = None
    profile_title: str | None = None
    profile_version: str | None = None
    """The version that it was asked for or placed with, whatever is offered now."""
    class_name: str | None = Field(default=None, alias="class")
    machine: str | None = None
    state: State
    phase: Phase
    position: int | None = None
    """How many are ahead in the line; None when not waiting."""
    parked: bool = False
    headline: str
    """English fallback for one plain sentence of the state now."""
    explanation: Explanation | None = None
    limits: Limits = Limits()
    events: tuple[TimelineEvent, ...] = ()
    truncated: bool = False
    """Older events are no longer kept."""
