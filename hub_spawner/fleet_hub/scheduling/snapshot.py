"""The fleet at one moment: all that a decision may depend on.

The controller builds a snapshot from its store, its links and the catalog; placement
is a function of it.  Instants are seconds since the epoch, UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fleet_contracts.catalog import Catalog, Relation
from fleet_contracts.placement_facts import PlacementFacts
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import (
    DriverName,
    ModelVerdict,
    Principal,
    Resources,
    WorkloadKind,
)


_NOTHING_SAID = PlacementFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Somebody was seen to compute nothing, and is ended if that goes on.

    It is told, and enters no promise: one cell makes it untrue.
    """

    since: float
    ends: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What one workload holds of a machine, from ``placed`` to the confirmed end."""

    workload: str
    user_id: int
    owner: str
    resources: Resources
    driver: DriverName
    kind: WorkloadKind = WorkloadKind.NOTEBOOK
    class_name: str = ""
    devices_asked: int = 0
    """What its class asked for; CPU work that reserves Metal asked for none."""
    groups: tuple[str, ...] = ()
    title: str | None = None
    since: float
    ends_by: float | None = None
    """The latest end that the agent enforces; None: nobody knows."""
    handle: str = ""
    """By this others ask for what it holds; empty: nobody is to be asked."""
    asked: tuple[tuple[int, float], ...] = ()
    """Who asked for that, by the Hub's user id, and when."""

    @property
    def devices(self) -> int:
        """How many devices count against a quota."""
        return max(self.devices_asked, len(self.resources.devices))

    def is_same_hold(self, other: Allocation) -> bool:
        """Return whether both hold the same, whatever else is told of either."""
        known = replace(self, title=other.title, handle=other.handle, asked=other.asked)
        return known == other


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Whom a machine serves, from the controller's record.

    The stricter of the admin's word and the owner's word wins; a new machine serves
    only its owner.
    """

    admin_allows: Relation = Relation.OWNER
    owner_allows: Relation = Relation.OWNER
    users: frozenset[str] = frozenset()
    """Members by name."""
    groups: frozenset[str] = frozenset()
    """Members by group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """One machine: its record, what it says of itself, and what it holds."""

    name: str
    owner: str
    """The Hub user's name, from the record."""
    local: bool = False
    """It is the Hub's own machine."""
    online: bool = True
    offline_since: float | None = None
    expected_back: bool = False
    """It is away for a moment only, as far as is known: promises on it stand."""
    inventory_known: bool = True
    """Its agent has told, since this controller started, what really runs."""
    draining_by: str | None = None
    """Who drains it; None: nobody."""
    agent_too_old: bool = False
    keeps_back: Reason | None = None
    """Why files of its notebooks cannot be copied to other machines; None: they can."""
    address_fault: Explanation | None = None
    """Why notebook traffic may not go there; None: it may."""
    metal_counts_to: str | None = None
    """Another machine, which is the very same Mac: its GPU is given through that one."""
    quarantined_until: float | None = None
    """Until when it is set aside, since several starts went wrong there; None: never."""
    facts: PlacementFacts = _NOTHING_SAID
    """What it says of itself; the default is "nothing yet", which fits nothing."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """From the record, never from the agent: an admin gives them."""
    sharing: Sharing = Sharing()
    held: tuple[Allocation, ...] = ()
    in_use: tuple[str, ...] = ()
    """Devices that somebody was seen to use, by UUID.  An observation is no capacity:
    it only says which of equal free devices to leave alone."""
    foreign: tuple[tuple[str, int], ...] = ()
    """Devices that programs outside the fleet are known to use, by UUID, with how many
    bytes those take.  They are not given to anybody meanwhile."""
    unused_memory_bytes: int | None = None
    """What it last saw that nothing uses: an observation, and no room either."""
    rested: tuple[tuple[str, float], ...] = ()
    """Devices that were seen at rest for a while, by UUID, with since when.  An
    observation as well: it is told of who holds them, and enters no promise."""
    idle: tuple[tuple[str, Idle], ...] = ()
    """Workloads with an idle limit that compute nothing, by name: observed as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Where a workload's files are: it goes back there, with the same driver."""

    machine: str
    driver: DriverName
    class_name: str = ""
    """The class it last had there: what "keep the old class" means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Where a waiting workload has a promise: it starts there by *start*."""

    machine: str
    driver: DriverName
    start: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One workload in the line."""

    workload: str
    principal: Principal
    profile: str
    class_name: str | None = None
    """None: the profile's first class."""
    kind: WorkloadKind = WorkloadKind.NOTEBOOK
    priority: int = 0
    """An admin's word, in place of the profile's own; 0: there is none."""
    asked_at: float
    parked: bool = False
    pin: Pin | None = None
    source: str | None = None
    """The machine with files of which it begins with a copy: it has to be there."""
    rejected_by: Mapping[str, Reason] = field(default_factory=dict)
    """Machines whose agents said no to this request, and why."""
    rejections: int = 0
    """How often it was rejected: one that everybody rejects yields its turn."""
    promise: float | None = None
    """The "no later than" it was given; it only ever moves earlier."""
    reservation: Reservation | None = None
    """Where that promise is kept; given back so that a restart breaks none."""
    model: ModelVerdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a user has used, already decayed to *as_of*; see ``shares.py``."""

    amount: float
    as_of: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """All that the fleet has, known amounts only."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    devices: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How the line stands: places are worked out once a minute, and not at each look."""

    capacity: Capacity = field(default_factory=Capacity)
    """What the fleet had by then: shares are parts of it."""
    used: Mapping[int, float] = field(default_factory=dict)
    """What each user had used by then, and has started since; by the Hub's user id."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """The share that each workload's place was worked out with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The fleet, the line and the rules, at *now*."""

    now: float
    catalog: Catalog
    machines: tuple[MachineState, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    usage: Mapping[int, Usage] = field(default_factory=dict)
    """By the Hub's user id."""
    ranking: Ranking | None = None
    """How the line stood; None: it is ranked anew."""
    recovering: bool = False
    """The controller has just started: silent machines may still report."""
    names_visible: bool = True
    """Whether a user may read who holds what they wait for."""
