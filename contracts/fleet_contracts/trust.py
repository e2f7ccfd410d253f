"""Who may run on which machine through which isolation.

The principal's relation to the machine meets the isolation of the driver.  Weak
isolation serves the machine's owner and no setting widens it; otherwise the stricter
of the admin's and the owner's word wins.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fleet_contracts.catalog import Isolation, Relation, TrustPolicy
from fleet_contracts.language import mark
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import DriverName, Principal


ISOLATION: Final = {
    DriverName.NATIVE: Isolation.WEAK,
    DriverName.DOCKER: Isolation.CONTAINER,
    DriverName.KUBERNETES: Isolation.CLUSTER,
    DriverName.SIMULATION: Isolation.NONE,
}
"""What each driver puts between a workload and the machine."""
BY_ADMIN: Final = mark("an admin lets this machine serve fewer people")
BY_CATALOG: Final = mark("the trust policy of the catalog says so")
"""Whose word it is, where several may forbid."""

_DISTANCE: Final = {relation: distance for distance, relation in enumerate(Relation)}


def relation_of(
    principal: Principal,
    *,
    owner: str,
    users: Collection[str] = (),
    groups: Collection[str] = (),
) -> Relation:
    """Return how *principal* stands to a machine of *owner* with these members."""
    if principal.name == owner:
        return Relation.OWNER
    if principal.name in users or not set(groups).isdisjoint(principal.groups):
        return Relation.MEMBER
    return Relation.GUEST


def trust_refusal(
    relation: Relation,
    driver: DriverName,
    *,
    policy: TrustPolicy,
    admin_allows: Relation,
    owner_allows: Relation,
) -> Explanation | None:
    """Return why a principal of this *relation* may not use *driver*; None: they may.

    A Hub admin has no relation of their own: being an admin widens nothing.
    """
    if relation is Relation.OWNER:
        return None
    isolation = ISOLATION[driver]
    if isolation is Isolation.WEAK:
        return Explanation(reason=Reason.ISOLATION_TOO_WEAK, subject=driver.value)
    if _is_beyond(relation, owner_allows):
        return Explanation(reason=Reason.OWNER_FORBIDS)
    if _is_beyond(relation, admin_allows):
        return Explanation(
            reason=Reason.NOT_IN_AUDIENCE, subject="machine", detail=BY_ADMIN
        )
    if _is_beyond(relation, _farthest(isolation, policy)):
        return Explanation(
            reason=Reason.ISOLATION_TOO_WEAK, subject=driver.value, detail=BY_CATALOG
        )
    return None


def _farthest(isolation: Isolation, policy: TrustPolicy) -> Relation:
    if isolation is Isolation.CONTAINER:
        return policy.container
    if isolation is Isolation.CLUSTER:
        return policy.cluster
    # Nothing of the user's runs under the simulation driver.
    return Relation.GUEST


def _is_beyond(relation: Relation, farthest: Relation) -> bool:
    return _DISTANCE[relation] > _DISTANCE[farthest]
