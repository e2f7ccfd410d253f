"""What all machines answer to one request, counted without asking each of them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from fleet_contracts.language import mark
from fleet_contracts.reasons import FACTS, Explanation, Reason
from fleet_hub.scheduling.answers import Asker, machine_numbers, machine_reason
from fleet_hub.scheduling.equals import equal_machines, members
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.headline import fleet_answer
from fleet_hub.scheduling.interests import Interest
from fleet_hub.scheduling.nearness import HOPELESS, nearest, nearness
from fleet_hub.scheduling.vectors import DISK
from fleet_hub.scheduling.waiter import Waiter


MOST_EXAMPLES = 10
FILES_THERE: Final = mark("the server's files are there")


@dataclass(slots=True)
class Survey:
    """How many machines gave each reason, and a few of each by name.

    A machine that has room counts as ``behind``: it is promised to somebody else.
    """

    counts: Counter[Reason] = field(default_factory=Counter)
    names: dict[Reason, list[str]] = field(default_factory=dict)

    def add(self, reason: Reason, names: Sequence[str], count: int) -> None:
        """Count *count* machines; *names* are the first of them, in order."""
        if not count:
            return
        self.counts[reason] += count
        known = self.names.get(reason)
        if known is None:
            self.names[reason] = list(names[:MOST_EXAMPLES])
        elif len(known) < MOST_EXAMPLES or names[0] < known[-1]:
            merged = heapq.merge(known, names)
            self.names[reason] = list(islice(merged, MOST_EXAMPLES))

    def examples(self) -> list[str]:
        """Return the nearest machines first, at most ten; of equal ones by name."""
        ordered = sorted(self.names, key=nearness, reverse=True)
        names = (name for reason in ordered for name in self.names[reason])
        return list(islice(names, MOST_EXAMPLES))


def survey(fleet: Fleet, interest: Interest, waiter: Waiter) -> Survey:
    """Return what every machine answers to *waiter*, promises aside."""
    result = Survey()
    for reason, names in _reasons(fleet, interest, waiter):
        result.add(reason, names, len(names))
    if interest.pin is not None:
        others = sorted(fleet.entries.keys() - {interest.pin.machine})
        result.add(Reason.DATA_NOT_LOCAL, others[:MOST_EXAMPLES], len(others))
    return result


def _reasons(
    fleet: Fleet, interest: Interest, waiter: Waiter
) -> Iterator[tuple[Reason, list[str]]]:
    """Yield what the machines say that could be asked, those together that are equal."""
    rejected_by = waiter.waiting.rejected_by
    for part in interest.parts:
        for names in equal_machines(fleet, waiter, part):
            first = fleet.entries[names[0]]
            reason, _ = machine_reason(first, part.outlook, rejected_by)
            yield reason or Reason.BEHIND, names


def never_answer(
    fleet: Fleet, interest: Interest, waiter: Waiter
) -> Explanation | None:
    """Return why nothing in the fleet will ever run *waiter*; None: something may."""
    if not interest.hopeless and not waiter.request.chosen.disk_bytes:
        return None
    if any(
        FACTS[reason].kind not in HOPELESS
        for reason, _ in _reasons(fleet, interest, waiter)
    ):
        return None
    request = waiter.request
    if interest.pin is None and not request.chosen.disk_bytes:
        # Whole groups say the same, and are asked in the order of their first names.
        first = ((min(members(interest, part)), part) for part in interest.parts)
        said = [(name, part.outlook.nearest_miss) for name, part in first]
    else:
        asked = _misses(fleet, interest, waiter)
        said = [(name, miss) for name, miss in asked if miss is not None]
    said.sort(key=lambda item: item[0])
    if interest.pin is not None and interest.pin.machine in fleet.entries:
        return _home_answer(interest.pin.machine, [miss for _, miss in said])
    return fleet_answer(fleet, request, said)


def _home_answer(home: str, misses: Sequence[Explanation]) -> Explanation | None:
    """Return why the machine with the files never runs it, as that machine's own word.

    What the other machines have is no answer: they were not asked.
    """
    own = [miss for miss in misses if miss.reason is not Reason.DATA_NOT_LOCAL]
    why = nearest(own) or Explanation(reason=Reason.DATA_NOT_LOCAL)
    there = f"{why.detail}; {FILES_THERE}" if why.detail else FILES_THERE
    return why.model_copy(update={"machine": home, "detail": there})


def _misses(
    fleet: Fleet, interest: Interest, waiter: Waiter
) -> Iterator[tuple[str, Explanation | None]]:
    """Yield what machines say that never do, with the first name of those alike."""
    for part in interest.parts:
        for names in equal_machines(fleet, waiter, part):
            entries = [fleet.entries[name] for name in names]
            # Of disks that are too small the largest is told.
            largest = max(entries, key=lambda entry: entry.capacity[DISK])
            rejected_by = waiter.waiting.rejected_by
            yield names[0], machine_numbers(largest, part.outlook, rejected_by)
    if interest.pin is not None:
        for name in sorted(fleet.entries.keys() - {interest.pin.machine})[:1]:
            yield name, Explanation(reason=Reason.DATA_NOT_LOCAL)


def answer_of(
    fleet: Fleet, interest: Interest, asker: Asker, name: str
) -> Explanation | None:
    """Return what one machine says; None: it has room."""
    entry = fleet.entries[name]
    if interest.pin is not None and interest.pin.machine != name:
        return Explanation(reason=Reason.DATA_NOT_LOCAL, machine=name)
    return fleet.answers.of(entry, fleet.outlook_on(interest, entry), asker)
