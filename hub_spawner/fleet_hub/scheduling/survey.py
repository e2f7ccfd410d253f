"""What all machines answer to one request, counted without asking each of them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from fleet_contracts.reasons import FACTS, Explanation, Reason
from fleet_hub.scheduling.answers import Asker, machine_answer, machine_reason
from fleet_hub.scheduling.fleet import Fleet, Group, Interest, Part
from fleet_hub.scheduling.headline import fleet_answer
from fleet_hub.scheduling.nearness import HOPELESS, nearness
from fleet_hub.scheduling.outlooks import Outlook
from fleet_hub.scheduling.waiter import Waiter


MOST_EXAMPLES = 10


@dataclass(slots=True)
class Survey:
    """How many machines gave each reason, and a few of each by name.

    A machine that has room counts as ``behind``: it is promised to somebody else.
    """

    counts: Counter[Reason] = field(default_factory=Counter)
    names: dict[Reason, list[str]] = field(default_factory=dict)

    def add(self, reason: Reason, names: Iterable[str], count: int) -> None:
        """Count *count* machines; *names* are some of them, in order."""
        if count:
            self.counts[reason] += count
            known = heapq.merge(self.names.get(reason, ()), names)
            self.names[reason] = list(islice(known, MOST_EXAMPLES))

    def examples(self) -> list[str]:
        """Return the nearest machines first, at most ten; of equal ones by name."""
        ordered = sorted(self.names, key=nearness, reverse=True)
        names = (name for reason in ordered for name in self.names[reason])
        return list(islice(names, MOST_EXAMPLES))


def survey(fleet: Fleet, interest: Interest, waiter: Waiter) -> Survey:
    """Return what every machine answers to *waiter*, promises aside."""
    result = Survey()
    rejected_by, disk = waiter.waiting.rejected_by, waiter.request.chosen.disk_bytes
    for part in interest.parts:
        is_whole = part.own is None and part.others is None and interest.pin is None
        if is_whole and not rejected_by and not disk:
            _count_group(result, part.group, part.outlook)
            continue
        for name in sorted(_members(interest, part)):
            entry = fleet.entries[name]
            reason, _ = machine_reason(entry, part.outlook, rejected_by)
            result.add(reason or Reason.BEHIND, [name], 1)
    if interest.pin is not None:
        others = sorted(fleet.entries.keys() - {interest.pin.machine})
        result.add(Reason.DATA_NOT_LOCAL, others[:MOST_EXAMPLES], len(others))
    return result


def never_answer(
    fleet: Fleet, interest: Interest, waiter: Waiter
) -> Explanation | None:
    """Return why nothing in the fleet will ever run *waiter*; None: something may."""
    if not interest.hopeless and not waiter.request.chosen.disk_bytes:
        return None
    counted = survey(fleet, interest, waiter)
    if any(FACTS[reason].kind not in HOPELESS for reason in counted.counts):
        return None
    said = answers(fleet, interest, waiter)
    return fleet_answer([answer for answer in said if answer is not None])


def answers(
    fleet: Fleet, interest: Interest, waiter: Waiter
) -> Iterator[Explanation | None]:
    """Yield what each machine says, by name; None: it has room."""
    asker = waiter.asker(names_visible=fleet.context.names_visible)
    for name in sorted(fleet.entries):
        yield answer_of(fleet, interest, asker, name)


def answer_of(
    fleet: Fleet, interest: Interest, asker: Asker, name: str
) -> Explanation | None:
    """Return what one machine says; None: it has room."""
    entry = fleet.entries[name]
    if interest.pin is not None and interest.pin.machine != name:
        return Explanation(reason=Reason.DATA_NOT_LOCAL, machine=name)
    return machine_answer(entry, fleet.outlook_on(interest, entry), asker)


def _members(interest: Interest, part: Part) -> set[str]:
    """Return the machines that *part* is about."""
    if interest.pin is not None:
        return {interest.pin.machine}
    if part.own is not None:
        return part.group.owners[part.own]
    return {
        name
        for owner, names in part.group.owners.items()
        if owner != part.others
        for name in names
    }


def _count_group(result: Survey, group: Group, outlook: Outlook) -> None:
    """Count a whole group by its buckets: equal machines give equal reasons."""
    for name, entry in sorted(group.troubled.items()):
        reason, _ = machine_reason(entry, outlook, {})
        result.add(reason or Reason.BEHIND, [name], 1)
    for names in group.pool.buckets.values():
        reason, _ = machine_reason(group.pool.entries[names[0]], outlook, {})
        result.add(reason or Reason.BEHIND, names, len(names))
