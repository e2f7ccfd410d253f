"""Who holds how much already, against what the admin allows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fleet_contracts.catalog import Catalog, Quota, ResourceClass
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.snapshot import Allocation


Amounts = Mapping[str, int]

_UNITS = {
    "workloads": "workloads",
    "devices": "devices",
    "cpu_milli": "milli_cores",
    "memory_bytes": "bytes",
}
"""What a quota may limit, and the unit of its numbers."""


def is_of_quota(bar: Explanation | None) -> bool:
    """Return whether a quota that is used up is what keeps somebody from every place."""
    return bar is not None and bar.reason in {Reason.USER_LIMIT, Reason.QUOTA_IN_USE}


class Limit(NamedTuple):
    """One limit that binds one user or group."""

    subject: str
    of_user: bool
    resource: str
    amount: int


@dataclass(slots=True)
class Totals:
    """Running totals of what users and groups hold, by resource."""

    users: dict[str, dict[str, int]] = field(default_factory=dict)
    groups: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, owner: str, groups: Iterable[str], amounts: Amounts) -> None:
        """Count *amounts* as held by *owner*, and by each of *groups*."""
        self._change(owner, groups, amounts, 1)

    def remove(self, owner: str, groups: Iterable[str], amounts: Amounts) -> None:
        """Undo ``add`` of the same arguments."""
        self._change(owner, groups, amounts, -1)

    def of(self, limit: Limit) -> int:
        """Return what counts against *limit*."""
        table = self.users if limit.of_user else self.groups
        return table.get(limit.subject, {}).get(limit.resource, 0)

    def _change(
        self, owner: str, groups: Iterable[str], amounts: Amounts, sign: int
    ) -> None:
        tables = [self.users.setdefault(owner, {})]
        tables += [self.groups.setdefault(group, {}) for group in groups]
        for table in tables:
            for resource, amount in amounts.items():
                table[resource] = table.get(resource, 0) + sign * amount


def held_amounts(allocation: Allocation) -> Amounts:
    """Return what *allocation* counts for."""
    return {
        "workloads": 1,
        "devices": allocation.devices,
        "cpu_milli": allocation.resources.cpu_milli,
        "memory_bytes": allocation.resources.memory_bytes,
    }


def amount_in(amounts: Amounts, unit: str) -> int:
    """Return what *amounts* count for against a limit in this unit."""
    return sum(amounts[name] for name, its_unit in _UNITS.items() if its_unit == unit)


def asked_amounts(chosen: ResourceClass) -> Amounts:
    """Return what a workload of this class would count for."""
    return {
        "workloads": 1,
        "devices": chosen.devices,
        "cpu_milli": chosen.cpu_milli,
        "memory_bytes": chosen.memory_bytes,
    }


def exceeds_ever(
    catalog: Catalog, principal: Principal, chosen: ResourceClass
) -> Explanation | None:
    """Return the quota that *chosen* alone would exceed, however little is held."""
    wanted = asked_amounts(chosen)
    for limit in _limits(catalog.quotas, principal):
        if wanted[limit.resource] > limit.amount:
            return _explain(Reason.EXCEEDS_QUOTA_EVER, limit, wanted[limit.resource])
    return None


def quota_in_use(
    catalog: Catalog,
    principal: Principal,
    chosen: ResourceClass,
    used_of: Callable[[Limit], int],
) -> Explanation | None:
    """Return the quota that *chosen* would exceed beside what is used of it already."""
    wanted = asked_amounts(chosen)
    for limit in _limits(catalog.quotas, principal):
        used = used_of(limit)
        if used + wanted[limit.resource] > limit.amount:
            reason = Reason.USER_LIMIT if limit.of_user else Reason.QUOTA_IN_USE
            return _explain(reason, limit, wanted[limit.resource], used=used)
    return None


def _limits(quotas: Iterable[Quota], principal: Principal) -> Iterator[Limit]:
    """Yield each limit that binds *principal*, with whom it counts."""
    for quota in quotas:
        of_user = quota.user is not None
        named, mine = (
            (quota.user, (principal.name,))
            if of_user
            else (quota.group, principal.groups)
        )
        for subject in mine:
            if named not in {"*", subject}:
                continue
            for resource in _UNITS:
                amount = getattr(quota, resource)
                if amount is not None:
                    yield Limit(subject, of_user, resource, amount)


def _explain(
    reason: Reason, limit: Limit, wanted: int, *, used: int = 0
) -> Explanation:
    return Explanation(
        reason=reason,
        subject=limit.subject,
        requested=wanted,
        capacity=limit.amount,
        free=max(0, limit.amount - used),
        unit=_UNITS[limit.resource],
    )
