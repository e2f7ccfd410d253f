"""What one kind of asker could use of the fleet, and how it stands to its owners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fleet_contracts.catalog import Relation
from fleet_contracts.trust import relation_of
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.entries import Entry
from fleet_hub.scheduling.outlooks import Outlook
from fleet_hub.scheduling.pools import Horizon, Pool
from fleet_hub.scheduling.signatures import Signature
from fleet_hub.scheduling.snapshot import Pin
from fleet_hub.scheduling.vectors import METAL


@dataclass(slots=True, eq=False)
class Group:
    """The machines of one signature."""

    signature: Signature
    pool: Pool = field(default_factory=Pool)
    by_owner: dict[str, Pool] = field(default_factory=dict)
    """Made when somebody first needs one."""
    owners: dict[str, set[str]] = field(default_factory=dict)
    """The names of each owner's machines, troubled ones included."""
    troubled: dict[str, Entry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A part of the fleet that a request could use, and how."""

    horizon: Horizon
    spared: int
    """What of it others would miss, though the request does not want it: least first.

    0: nothing.  1: it has accelerators, or nobody knows yet that it has none.  2: the
    request would hold the Mac's GPU all the same.
    """


class Part(NamedTuple):
    """Machines of one group that answer an asker alike."""

    group: Group
    outlook: Outlook
    own: str | None = None
    """Only the machines of this owner."""
    others: str | None = None
    """All machines but those of this owner."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interest:
    """What one kind of asker could use for one request."""

    request: Request
    principal: Principal
    """Any of those who are alike in this."""
    pin: Pin | None
    views: tuple[View, ...]
    view_of: Mapping[Pool, View]
    parts: tuple[Part, ...]
    hopeless: bool
    """Whether no machine will ever do, as things are; asked of a fleet with some."""
    usable: frozenset[str]
    """The keys of the signatures that could ever run it."""


def interest_of(
    request: Request,
    principal: Principal,
    pin: Pin | None,
    parts: tuple[Part, ...],
    pools: Iterable[Pool],
) -> Interest:
    """Return the interest whose *parts* have these *pools*, accelerators last."""
    views = []
    for part, pool in zip(parts, pools, strict=True):
        if part.outlook.placeable and pin is None:
            horizon = pool.horizon(part.outlook.needs, request.hold_seconds)
            views.append(View(horizon=horizon, spared=_spared(part, request)))
    views.sort(key=lambda view: view.spared)
    return Interest(
        request=request,
        principal=principal,
        pin=pin,
        views=tuple(views),
        view_of={view.horizon.pool: view for view in views},
        parts=parts,
        hopeless=all(part.outlook.hopeless for part in parts),
        usable=frozenset(
            part.group.signature.key for part in parts if part.outlook.needs
        ),
    )


def _spared(part: Part, request: Request) -> int:
    """Return what others would miss of the machines of *part*; see ``View``."""
    if request.chosen.devices:
        return 0
    if part.outlook.needs[0].fixed[METAL]:
        return 2
    signature = part.group.signature
    facts = signature.facts
    return int(signature.accelerated or not facts.settled or bool(facts.unlisted))


def identity_of(part: Part) -> tuple[object, ...]:
    """Return what is equal for parts that answer alike."""
    return part.group.signature.key, id(part.outlook), part.own, part.others


def relation_to(principal: Principal, group: Group, owner: str | None) -> Relation:
    """Return how *principal* stands to the group's machines of *owner*.

    Without an owner: to the machines that are not their own.
    """
    sharing = group.signature.sharing
    return relation_of(
        principal,
        owner=owner if owner is not None else "",
        users=sharing.users,
        groups=sharing.groups,
    )
