"""Who waits under which quota, and who is to be looked at again when use changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fleet_contracts.catalog import Catalog
from fleet_contracts.reasons import Explanation, Holder, Reason
from fleet_contracts.workloads import Principal
from fleet_hub.scheduling.holders import MOST, told
from fleet_hub.scheduling.line import Line
from fleet_hub.scheduling.quota_kinds import Kinds, Subject
from fleet_hub.scheduling.quotas import (
    Limit,
    Totals,
    amount_in,
    asked_amounts,
    held_amounts,
    quota_in_use,
)
from fleet_hub.scheduling.snapshot import Allocation
from fleet_hub.scheduling.waiter import Waiter


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
        self._holders: dict[Subject, dict[str, Allocation]] = {}
        self._line = line
        self._waiters = waiters
        self._held = Totals()
        self._kinds = Kinds(line)

    def moved(self, waiter: Waiter) -> None:
        """Somebody who waits is barred, promised a place, or neither any more."""
        if self._catalog.quotas:
            self._kinds.note(waiter)

    def leave(self, waiter: Waiter) -> None:
        """Somebody waits no more."""
        self._kinds.forget(waiter.workload)

    def arrange(self) -> None:
        """Follow that places in the line changed."""
        self._kinds.arrange()

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
        """Return who is to be looked at after use under the same quotas changed.

        One of each kind that is kept from a place, and one that is promised one.
        """
        return self._kinds.speakers(self._subjects(principal))

    def exceeded_by(self, waiter: Waiter) -> Explanation | None:
        """Return the quota that keeps *waiter* from being placed or promised a place.

        What is promised to others of no lower priority counts as if they held it:
        otherwise a workload could break the promise of its own user's earlier one.
        """
        if not self._catalog.quotas:
            return None
        name, principal = waiter.workload, waiter.waiting.principal
        behind = self._line.place_of(name).behind_priority

        def used_of(limit: Limit) -> int:
            return self._held.of(limit) + self._kinds.promised(
                limit, beside=name, behind_priority=behind
            )

        found = quota_in_use(self._catalog, principal, waiter.request.chosen, used_of)
        return None if found is None else self._with_holders(found, waiter)

    def _with_holders(self, found: Explanation, waiter: Waiter) -> Explanation:
        """Return *found* with whose work uses the quota up, and how much of it each.

        Those ahead hold nothing yet; what they are promised is used up all the same.
        """
        viewer = waiter.waiting.principal
        subject = found.reason is Reason.USER_LIMIT, found.subject or ""
        holders = told(
            self._holders.get(subject, {}).values(),
            lambda item: amount_in(held_amounts(item), found.unit or ""),
            viewer=viewer,
            names_visible=self._names_visible,
        )
        ahead = self._kinds.promised_before(
            subject,
            beside=waiter.workload,
            behind_priority=self._line.place_of(waiter.workload).behind_priority,
        )
        promised = tuple(
            Holder(
                workload=name,
                owner=owner if self._names_visible or owner == viewer.name else None,
                own=owner == viewer.name,
                promised=True,
                amount=amount_in(asked_amounts(other.request.chosen), found.unit or ""),
            )
            for name in ahead[: MOST - len(holders)]
            for other in (self._waiters[name],)
            for owner in (other.waiting.principal.name,)
        )
        return found.model_copy(update={"holders": holders + promised})

    def _note(self, item: Allocation, *, is_held: bool) -> None:
        owner = Principal(user_id=0, name=item.owner, groups=item.groups)
        for subject in self._subjects(owner):
            holders = self._holders.setdefault(subject, {})
            if is_held:
                holders[item.workload] = item
            else:
                holders.pop(item.workload, None)

    def _subjects(self, principal: Principal) -> list[Subject]:
        """Return whose quotas bind *principal*; nobody's where there are none."""
        if not self._catalog.quotas:
            return []
        return [(True, principal.name), *((False, group) for group in principal.groups)]
