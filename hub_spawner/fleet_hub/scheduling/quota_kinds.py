"""Who waits for the same under the same quotas: one of them speaks for all.

To a quota workloads of one kind are alike.  While the first of those whom it keeps from
every place is still kept, so are the others; and while the last of those who are
promised a place keeps it, so do the others.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fleet_hub.scheduling.line import Line, Place
from fleet_hub.scheduling.quotas import (
    Amounts,
    Limit,
    Totals,
    asked_amounts,
    is_of_quota,
)
from fleet_hub.scheduling.waiter import Waiter


Subject = tuple[bool, str]
"""A user (True) or a group (False)."""


class Kind(NamedTuple):
    """What a quota looks at."""

    user: str
    groups: tuple[str, ...]
    class_name: str
    behind_priority: int
    is_unrestored: bool
    waits_for_files: bool
    """Of whom something else than a quota keeps from every place no quota is asked: they
    cannot speak for those who wait for it."""

    def subjects(self) -> Iterator[Subject]:
        """Yield whose quotas bind it."""
        yield True, self.user
        for group in self.groups:
            yield False, group


@dataclass(slots=True)
class _Members:
    """Those of one kind, in line order."""

    barred: list[Place] = field(default_factory=list)
    promised: list[Place] = field(default_factory=list)


class _Known(NamedTuple):
    """What is known of one who waits, as it was noted last."""

    kind: Kind
    place: Place
    amounts: Amounts
    is_barred: bool
    is_promised: bool


class Kinds:
    """Whom quotas keep from every place, and what is promised under them, by kind."""

    def __init__(self, line: Line) -> None:
        """Begin with nobody; *line* says in which order they come."""
        self._line = line
        self._known: dict[str, _Known] = {}
        self._members: dict[Kind, _Members] = {}
        self._of: dict[Subject, dict[Kind, None]] = {}
        self._promised: dict[int, Totals] = {}
        """What is promised, by priority."""

    def note(self, waiter: Waiter) -> None:
        """Know how *waiter* stands now."""
        self.forget(waiter.workload)
        is_promised = waiter.found is not None or waiter.is_unrestored
        by_quota = is_of_quota(waiter.bar)
        if not by_quota and not is_promised:
            return
        place, who = self._line.place_of(waiter.workload), waiter.waiting.principal
        known = _Known(
            Kind(
                who.name,
                who.groups,
                waiter.request.chosen.name,
                place.behind_priority,
                waiter.is_unrestored,
                waits_for_files=waiter.bar is not None and not by_quota,
            ),
            place,
            asked_amounts(waiter.request.chosen),
            is_barred=by_quota,
            is_promised=is_promised,
        )
        self._known[waiter.workload] = known
        self._add(known)

    def forget(self, workload: str) -> None:
        """Know nothing of *workload* any more."""
        known = self._known.pop(workload, None)
        if known is None:
            return
        kind, members = known.kind, self._members[known.kind]
        if known.is_barred:
            del members.barred[bisect_left(members.barred, known.place)]
        if known.is_promised:
            del members.promised[bisect_left(members.promised, known.place)]
            totals = self._promised[kind.behind_priority]
            totals.remove(kind.user, kind.groups, known.amounts)
        if not members.barred and not members.promised:
            del self._members[kind]
            for subject in kind.subjects():
                del self._of[subject][kind]

    def arrange(self) -> None:
        """Put everybody into line order anew, after places changed."""
        known, self._known = self._known, {}
        self._members.clear()
        self._of.clear()
        self._promised.clear()
        for workload, before in known.items():
            again = before._replace(place=self._line.place_of(workload))
            self._known[workload] = again
            self._add(again)

    def speakers(self, subjects: Iterable[Subject]) -> set[str]:
        """Return who has to be looked at after the use of *subjects* changed."""
        names = set()
        for subject in subjects:
            for kind in self._of.get(subject, ()):
                members = self._members[kind]
                names |= {place.workload for place in members.barred[:1]}
                names |= {place.workload for place in members.promised[-1:]}
        return names

    def promised(self, limit: Limit, *, beside: str, behind_priority: int) -> int:
        """Return what is promised against *limit* to others of no lower priority."""
        used = sum(
            totals.of(limit)
            for behind, totals in self._promised.items()
            if behind <= behind_priority
        )
        own = self._known.get(beside)
        if own is not None and own.is_promised:
            used -= own.amounts[limit.resource]
        return used

    def promised_before(
        self, subject: Subject, *, beside: str, behind_priority: int
    ) -> list[str]:
        """Return those others of *subject* who are promised something, by name."""
        return sorted(
            place.workload
            for kind in self._of.get(subject, ())
            if kind.behind_priority <= behind_priority
            for place in self._members[kind].promised
            if place.workload != beside
        )

    def _add(self, known: _Known) -> None:
        kind = known.kind
        if kind not in self._members:
            self._members[kind] = _Members()
            for subject in kind.subjects():
                self._of.setdefault(subject, {})[kind] = None
        if known.is_barred:
            insort(self._members[kind].barred, known.place)
        if known.is_promised:
            insort(self._members[kind].promised, known.place)
            totals = self._promised.setdefault(kind.behind_priority, Totals())
            totals.add(kind.user, kind.groups, known.amounts)
