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
    """An answer to everybody but those whom the machine knows."""

    answer: Explanation | None
    outlook: Outlook
    """Its identity is of the key, so it lives as long."""
    names: frozenset[str]
    """Of those who hold something there."""
    user_ids: frozenset[int]
    """Of those who asked for something that is held there."""

    def is_for(self, entry: Entry, asker: Asker) -> bool:
        """Return whether the machine says nothing else to *asker*."""
        return (
            asker.principal.name not in self.names
            and asker.principal.user_id not in self.user_ids
            and entry.machine.name not in asker.rejected_by
        )


class KeptAnswers:
    """Answers of machines that stay as they are.

    They may be asked for from any thread, of an entry that does not change meanwhile.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[object, _Kept] = {}

    def get(self, entry: Entry, outlook: Outlook, asker: Asker) -> Explanation | None:
        """Return what ``of`` would, if that is known; None: it is not, or it has room."""
        found = self._known.get((entry.moment, id(outlook), asker.names_visible))
        return (
            found.answer if found is not None and found.is_for(entry, asker) else None
        )

    def of(self, entry: Entry, outlook: Outlook, asker: Asker) -> Explanation | None:
        """Return what ``machine_answer`` returns."""
        key = (entry.moment, id(outlook), asker.names_visible)
        found = self._known.get(key)
        if found is not None and found.is_for(entry, asker):
            return found.answer
        answer = machine_answer(entry, outlook, asker)
        held = entry.allocations.values()
        kept = _Kept(
            answer,
            outlook,
            frozenset([allocation.owner for allocation in held]),
            frozenset([user_id for each in held for user_id, _ in each.asked]),
        )
        if kept.is_for(entry, asker):
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = kept
        return answer
