"""What a decision says: values only, for the store, the timeline and the pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fleet_contracts.changes import Change
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import DriverName, Resources, RuntimeSpec
from fleet_hub.scheduling.snapshot import Reservation


class Rule(StrEnum):
    """What put one who starts before whoever comes next in the line."""

    ALONE = "alone"
    """Nobody else waited."""
    BACKFILL = "backfill"
    """Others ahead go on waiting: none of them starts later because of it."""
    MOVED = "moved"
    """An admin put it first."""
    PRIORITY = "priority"
    YIELDED = "yielded"
    """Agents kept rejecting the next one."""
    SHARE = "share"
    """Its user has used less for their weight."""
    AGE = "age"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A workload gets a machine, and what it holds there."""

    workload: str
    machine: str
    driver: DriverName
    runtime: RuntimeSpec = field(repr=False)
    """With the ref of the machine's driver: for the agent, never for a user."""
    class_name: str
    resources: Resources
    devices_asked: int = 0
    """What its class asked for: CPU work on a Mac asked for no device."""
    limit_seconds: float | None = None
    ends_by: float | None = None
    """When it will have ended at the latest; None: it has no time limit."""
    score: tuple[tuple[str, float], ...] = ()
    """Why this machine: the terms in the order in which they counted."""
    runners_up: tuple[str, ...] = ()
    rule: Rule = Rule.ALONE
    """Why it, before others."""
    note: Explanation | None = None
    """A limit worth telling, such as the reserved Metal GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A workload that can never run as asked, or must not."""

    workload: str
    explanation: Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A workload stays in the line."""

    workload: str
    explanation: Explanation
    """The headline: the nearest miss, with its numbers and holders."""
    position: int
    """How many are ahead."""
    counts: Mapping[Reason, int] = field(default_factory=dict)
    """How many machines gave each reason."""
    rejections: tuple[Explanation, ...] = ()
    """The nearest misses first, at most ten; ``explain`` has every machine."""
    no_later_than: float | None = None
    """The promise; None: something that it waits for has no known end."""
    reservation: Reservation | None = None
    """Where the promise is kept; to be handed back with the workload."""
    broken: Explanation | None = None
    """Why an earlier promise can no longer be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that could be decided about one snapshot.

    Every waiting workload is in exactly one of the three.  Each placement was judged
    after the ones before it: carrying out a prefix is safe.
    """

    placements: tuple[Placement, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    waits: tuple[Wait, ...] = ()
    look_again_at: float | None = None
    """When time alone may change something; None: only an event can."""
    is_unfinished: bool = False
    """Some turns are left: decide again at once."""


class AlternativeKind(StrEnum):
    """What a user may do when the new choice cannot run where the files are."""

    KEEP_CLASS = "keep_class"
    COPY_FILES = "copy_files"
    FRESH_FOLDER = "fresh_folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One way out, offered and never taken silently."""

    kind: AlternativeKind
    class_name: str
    machine: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What would happen to a request that is not in the line yet."""

    startable: bool
    """It would start at once."""
    choosable: bool
    """It may be asked for: it starts, or waits."""
    ahead: int = 0
    """How many would be ahead of it."""
    machine: str | None = None
    """Where it would start."""
    explanation: Explanation | None = None
    """Why it does not start at once; None: it does."""
    counts: Mapping[Reason, int] = field(default_factory=dict)
    rejections: tuple[Explanation, ...] = ()
    """The nearest machines that say no, at most ten; ``inspection`` has all of them."""
    no_later_than: float | None = None
    change: Change | None = None
