"""Who waits under which quota, and who is to be looked at again when use changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fleet_contracts.catalog import Catalog
from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.holders import MOST, told
from fleet_hub.scheduling.line import Line
from fleet_hub.scheduling.quotas import (
    Totals,
    amount_in,
    asked_amounts,
    held_amounts,
    quota_in_use,
)
from fleet_hub.scheduling.snapshot import Allocation
from fleet_hub.scheduling.waiter import Waiter


_Subject = tuple[bool, str]
"""A user (True) or a group (False)."""


class QuotaWatch:
    """What everybody holds, and who waits beside them."""

    def __init__(
        self,
        catalog: Catalog,
        line: Line,
        waiters: Mapping[str, Waiter],
        *,
        names_visible: bool,
    ) -> None:
        """Begin with nothing held and nobody waiting."""
        self._catalog = catalog
        self._names_visible = names_visible
        self._holders: dict[_Subject, dict[str, Allocation]] = {}
        self._line = line
        self._waiters = waiters
        self._held = Totals()
        self._bound: dict[_Subject, set[str]] = {}

    def join(self, waiter: Waiter) -> None:
        """Somebody waits."""
        for subject in self._subjects(waiter.waiting.principal):
            self._bound.setdefault(subject, set()).add(waiter.workload)

    def leave(self, waiter: Waiter) -> None:
        """Somebody waits no more."""
        for subject in self._subjects(waiter.waiting.principal):
            self._bound[subject].discard(waiter.workload)

    def count(self, gone: Iterable[Allocation], come: Iterable[Allocation]) -> set[str]:
        """Follow what is held; return which workloads that may concern."""
        if not self._catalog.quotas:
            return set()
        touched: set[tuple[str, tuple[str, ...]]] = set()
        for change, items in ((self._held.remove, gone), (self._held.add, come)):
            for item in items:
                change(item.owner, item.groups, held_amounts(item))
                self._note(item, is_held=items is come)
                touched.add((item.owner, item.groups))
        return {
            name
            for owner, groups in touched
            for name in self.beside(Principal(user_id=0, name=owner, groups=groups))
        }

    def beside(self, principal: Principal) -> set[str]:
        """Return who is kept from a place, or promised one, under the same quotas."""
        if not self._catalog.quotas:
            return set()
        return {
            waiter.workload
            for waiter in self._bound_with(principal)
            if waiter.bar is not None or waiter.found is not None
        }

    def exceeded_by(self, waiter: Waiter) -> Explanation | None:
        """Return the quota that keeps *waiter* from being placed or promised a place.

        What is promised to others of no lower priority counts as if they held it:
        otherwise a workload could break the promise of its own user's earlier one.
        """
        if not self._catalog.quotas:
            return None
        promised, ahead = Totals(), []
        behind = self._line.place_of(waiter.workload).behind_priority
        for other in self._bound_with(waiter.waiting.principal):
            is_promised = other.found is not None or other.is_unrestored
            if other is waiter or not is_promised:
                continue
            if self._line.place_of(other.workload).behind_priority <= behind:
                principal = other.waiting.principal
                amounts = asked_amounts(other.request.chosen)
                promised.add(principal.name, principal.groups, amounts)
                ahead.append(other)
        principal = waiter.waiting.principal
        found = quota_in_use(
            self._catalog, principal, waiter.request.chosen, self._held, promised
        )
        return None if found is None else self._with_holders(found, principal, ahead)

    def _with_holders(
        self, found: Explanation, viewer: Principal, ahead: Iterable[Waiter]
    ) -> Explanation:
        """Return *found* with whose work uses the quota up, and how much of it each.

        Those *ahead* hold nothing yet; what they are promised is used up all the same.
        """
        subject = found.reason is Reason.USER_LIMIT, found.subject or ""
        holders = told(
            self._holders.get(subject, {}).values(),
            lambda item: amount_in(held_amounts(item), found.unit or ""),
            viewer=viewer,
            names_visible=self._names_visible,
        )
        promised = tuple(
            Holder(
                workload=other.workload,
                owner=owner if self._names_visible or owner == viewer.name else None,
                own=owner == viewer.name,
                promised=True,
                amount=amount_in(asked_amounts(other.request.chosen), found.unit or ""),
            )
            for other in ahead
            for owner in (other.waiting.principal.name,)
            if subject in self._subjects(other.waiting.principal)
        )
        return found.model_copy(update={"holders": (holders + promised)[:MOST]})

    def _note(self, item: Allocation, *, is_held: bool) -> None:
        owner = Principal(user_id=0, name=item.owner, groups=item.groups)
        for subject in self._subjects(owner):
            holders = self._holders.setdefault(subject, {})
            if is_held:
                holders[item.workload] = item
            else:
                holders.pop(item.workload, None)

    def _bound_with(self, principal: Principal) -> list[Waiter]:
        names: set[str] = set()
        for subject in self._subjects(principal):
            names |= self._bound.get(subject, set())
        return [self._waiters[name] for name in sorted(names)]

    def _subjects(self, principal: Principal) -> list[_Subject]:
        """Return whose quotas bind *principal*; nobody's where there are none."""
        if not self._catalog.quotas:
            return []
        return [(True, principal.name), *((False, group) for group in principal.groups)]
