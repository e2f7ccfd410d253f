"""Trust: who may run on which machine through which isolation."""

from __future__ import annotations

from itertools import product

import pytest

from fleet_contracts.catalog import Relation, TrustPolicy
from fleet_contracts.reasons import Reason
from fleet_contracts.trust import relation_of, trust_refusal
from fleet_contracts.workloads import DriverName, Principal


OWNER, MEMBER, GUEST = Relation.OWNER, Relation.MEMBER, Relation.GUEST


def refused(
    relation: Relation,
    driver: DriverName,
    *,
    policy: TrustPolicy | None = None,
    admin_allows: Relation = GUEST,
    owner_allows: Relation = GUEST,
) -> Reason | None:
    """Return the reason of the refusal, or None."""
    found = trust_refusal(
        relation,
        driver,
        policy=policy or TrustPolicy(container=GUEST),
        admin_allows=admin_allows,
        owner_allows=owner_allows,
    )
    return None if found is None else found.reason


def test_weak_isolation_serves_the_owner_and_no_setting_widens_it() -> None:
    """Whatever catalog, admin and owner say, native is for the machine's owner."""
    for container, cluster, admin, owner in product(Relation, repeat=4):
        policy = TrustPolicy(container=container, cluster=cluster)
        for relation in (MEMBER, GUEST):
            assert (
                refused(
                    relation,
                    DriverName.NATIVE,
                    policy=policy,
                    admin_allows=admin,
                    owner_allows=owner,
                )
                is Reason.ISOLATION_TOO_WEAK
            )
        assert (
            refused(
                OWNER,
                DriverName.NATIVE,
                policy=policy,
                admin_allows=admin,
                owner_allows=owner,
            )
            is None
        )


@pytest.mark.parametrize(
    ("admin", "owner", "expected"),
    [
        (GUEST, GUEST, None),
        (MEMBER, GUEST, Reason.NOT_IN_AUDIENCE),
        (GUEST, MEMBER, Reason.OWNER_FORBIDS),
        (OWNER, OWNER, Reason.OWNER_FORBIDS),
    ],
)
def test_the_stricter_of_admin_and_owner_wins(
    admin: Relation, owner: Relation, expected: Reason | None
) -> None:
    """One yes does not outweigh the other's no."""
    found = refused(GUEST, DriverName.DOCKER, admin_allows=admin, owner_allows=owner)
    assert found is expected


@pytest.mark.parametrize(
    ("driver", "relation", "expected"),
    [
        (DriverName.DOCKER, MEMBER, None),
        (DriverName.DOCKER, GUEST, Reason.ISOLATION_TOO_WEAK),
        (DriverName.KUBERNETES, GUEST, None),
        (DriverName.SIMULATION, GUEST, None),
    ],
)
def test_the_catalog_says_how_far_each_isolation_reaches(
    driver: DriverName, relation: Relation, expected: Reason | None
) -> None:
    """By default containers serve members, clusters serve guests."""
    assert refused(relation, driver, policy=TrustPolicy()) is expected


def test_a_narrower_cluster_policy_holds_for_clusters() -> None:
    """The admin may keep guests off the cluster."""
    found = refused(GUEST, DriverName.KUBERNETES, policy=TrustPolicy(cluster=MEMBER))
    assert found is Reason.ISOLATION_TOO_WEAK


@pytest.mark.parametrize(
    ("principal", "expected"),
    [
        (Principal(user_id=1, name="ada"), OWNER),
        (Principal(user_id=2, name="ben"), MEMBER),
        (Principal(user_id=3, name="cy", groups=("bio", "lab")), MEMBER),
        (Principal(user_id=4, name="dee", groups=("bio",)), GUEST),
        # Being an admin of the Hub is no relation to a machine.
        (Principal(user_id=5, name="root", admin=True), GUEST),
        # Names are compared as the Hub knows them.
        (Principal(user_id=6, name="Ada"), GUEST),
    ],
)
def test_the_relation_comes_from_the_record(
    principal: Principal, expected: Relation
) -> None:
    """Owner by name, member by name or group, everybody else is a guest."""
    found = relation_of(principal, owner="ada", users={"ben"}, groups={"lab"})
    assert found is expected
