"""What machines answer, kept as long as they stay as they are.

Whoever waits for the same is told of the same few machines, the nearest, and most of
them did not change since somebody else was told.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fleet_contracts.reasons import Explanation
from fleet_hub.scheduling.answers import Asker, machine_answer
from fleet_hub.scheduling.entries import Entry
from fleet_hub.scheduling.outlooks import Outlook


MOST: Final = 4000
"""So many are kept, with holders: some tens of megabytes."""


class _Kept(NamedTuple):
    """An answer, and who is told another one."""

    answer: Explanation | None
    outlook: Outlook
    """Its identity is of the key, so it lives as long."""
    names: frozenset[str]
    """Of those who hold something there."""
    user_ids: frozenset[int]
    """Of those who asked for something that is held there."""

    def concerns(self, asker: Asker) -> bool:
        """Return whether the machine says of *asker* what it says of nobody else."""
        principal = asker.principal
        return principal.name in self.names or principal.user_id in self.user_ids


class KeptAnswers:
    """Answers of machines that stay as they are.

    They may be asked for from any thread, of an entry that does not change meanwhile.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[object, _Kept] = {}

    def get(self, entry: Entry, outlook: Outlook, asker: Asker) -> Explanation | None:
        """Return what ``of`` would, if that is known; None: it is not, or it has room."""
        found = self._find(entry, outlook, asker)
        return None if found is None else found.answer

    def of(self, entry: Entry, outlook: Outlook, asker: Asker) -> Explanation | None:
        """Return what ``machine_answer`` returns."""
        found = self._find(entry, outlook, asker)
        if found is not None:
            return found.answer
        answer = machine_answer(entry, outlook, asker)
        if entry.machine.name not in asker.rejected_by:
            held = entry.allocations.values()
            kept = _Kept(
                answer,
                outlook,
                frozenset([allocation.owner for allocation in held]),
                frozenset([user_id for each in held for user_id, _ in each.asked]),
            )
            if len(self._known) >= MOST:
                self._known.clear()
            for_one = kept.concerns(asker)
            self._known[_key(entry, outlook, asker, for_one=for_one)] = kept
        return answer

    def _find(self, entry: Entry, outlook: Outlook, asker: Asker) -> _Kept | None:
        """Return what is kept for everybody, or for *asker*.

        What a machine says to whom it said no is between the two.
        """
        if entry.machine.name in asker.rejected_by:
            return None
        found = self._known.get(_key(entry, outlook, asker, for_one=False))
        if found is not None and not found.concerns(asker):
            return found
        return self._known.get(_key(entry, outlook, asker, for_one=True))


def _key(
    entry: Entry, outlook: Outlook, asker: Asker, *, for_one: bool
) -> tuple[object, ...]:
    """Return what an answer depends on, to everybody or to one person."""
    person = asker.principal
    who = (person.name, person.user_id) if for_one else ()
    return entry.moment, id(outlook), asker.names_visible, who
