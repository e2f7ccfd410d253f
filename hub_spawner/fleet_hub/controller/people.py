"""Whose things are whose: found by a person's id or name, whatever else is known.

Things that know their person alike are kept together, so that looking for those that
know one otherwise takes no longer for whoever has ten thousand.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar


Known = TypeVar("Known", bound=Hashable)
Person = int | str | None
"""An id or a name; None where nobody knows the id."""


class People(Generic[Known]):
    """Names of things, by person and by what each thing knows of its person."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._of: dict[Person, dict[Known, set[str]]] = {}

    def add(self, persons: tuple[Person, ...], known: Known, thing: str) -> None:
        """Let *thing* be of *persons*, of whom it knows this."""
        for person in persons:
            self._of.setdefault(person, {}).setdefault(known, set()).add(thing)

    def remove(self, persons: tuple[Person, ...], known: Known, thing: str) -> None:
        """Undo ``add`` of the same arguments."""
        for person in persons:
            alike = self._of[person]
            alike[known].discard(thing)
            if not alike[known]:
                del alike[known]

    def of(self, person: Person) -> list[str]:
        """Return everything of one person, by name."""
        return sorted(set().union(*self._of.get(person, {}).values()))

    def known_of(self, person: Person) -> tuple[Known, ...]:
        """Return what things of that person know of it, each once."""
        return tuple(self._of.get(person, {}))

    def otherwise(self, persons: tuple[Person, ...], known: Known) -> list[str]:
        """Return the things of *persons* that know anything but this, by name."""
        return sorted(
            {
                thing
                for person in persons
                for what, things in self._of.get(person, {}).items()
                if what != known
                for thing in things
            }
        )
