"""What an edit of the catalog changed, as an admin reads it.

Entries are told by section and name, amounts in the catalog's own units.  Of a ref it
is only told that it is another one: the difference is shown on pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from typing_extensions import override

from fleet_contracts.amounts import format_bytes, format_cores, format_seconds
from fleet_contracts.base import Contract
from fleet_contracts.catalog import Catalog, Quota


class EditKind(StrEnum):
    """What happened to an entry."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"
    """Only its place in the order is another one, which selection goes by."""


class Edit(Contract):
    """One entry that is not as it was."""

    kind: EditKind
    section: str
    name: str
    details: tuple[str, ...] = ()
    """For a changed entry: ``cpu 1 → 2``."""

    @override
    def __str__(self) -> str:
        """Return the edit as one line of a difference."""
        told = f": {', '.join(self.details)}" if self.details else ""
        moved = " moved" if self.kind is EditKind.MOVED else ""
        what = f"{self.section} {self.name}".strip()
        return f"{_SIGNS[self.kind]} {what}{moved}{told}"


_SIGNS: Final = {
    EditKind.ADDED: "+",
    EditKind.REMOVED: "-",
    EditKind.CHANGED: "~",
    EditKind.MOVED: "~",
}
_SECRET: Final = frozenset({"ref", "container_ref", "driver_refs"})
_UNITS: Final[Mapping[str, Callable[[Any], str]]] = {
    "bytes": format_bytes,
    "milli": format_cores,
    "seconds": format_seconds,
}


def edits(old: Catalog, new: Catalog) -> tuple[Edit, ...]:
    """Return what is not in *new* as it was in *old*, in the order of *new*."""
    return (
        *_named("class", old.classes, new.classes),
        *_named("runtime", old.runtimes, new.runtimes),
        *_named("profile", old.profiles, new.profiles),
        *_quotas(old.quotas, new.quotas),
        *_single("shares", old.shares, new.shares),
        *_single("trust", old.trust, new.trust),
    )


def _named(section: str, old: Sequence[Any], new: Sequence[Any]) -> Iterator[Edit]:
    before = {item.name: item for item in old}
    after = {item.name: item for item in new}
    for item in new:
        earlier = before.get(item.name)
        if earlier is None:
            yield Edit(kind=EditKind.ADDED, section=section, name=item.name)
        elif earlier != item:
            yield Edit(
                kind=EditKind.CHANGED,
                section=section,
                name=item.name,
                details=tuple(_details(earlier, item)),
            )
    for name in before:
        if name not in after:
            yield Edit(kind=EditKind.REMOVED, section=section, name=name)
    for name in _moved(
        [item.name for item in old if item.name in after],
        [item.name for item in new if item.name in before],
    ):
        yield Edit(kind=EditKind.MOVED, section=section, name=name)


def _moved(old: list[str], new: list[str]) -> list[str]:
    """Return the names that have to be taken out for the rest to be in order."""
    moved: list[str] = []
    place = {name: number for number, name in enumerate(old)}
    highest = -1
    for name in new:
        if place[name] < highest:
            moved.append(name)
        highest = max(highest, place[name])
    return moved


def _quotas(old: Sequence[Quota], new: Sequence[Quota]) -> Iterator[Edit]:
    """Yield quotas that came or went; they have no names to be told apart by."""
    for kind, some, others in (
        (EditKind.ADDED, new, old),
        (EditKind.REMOVED, old, new),
    ):
        for quota in some:
            if quota not in others:
                whose = f"user {quota.user}" if quota.user else f"group {quota.group}"
                limits = quota.model_dump(exclude={"user", "group"}, exclude_none=True)
                yield Edit(
                    kind=kind,
                    section="quota",
                    name=f"of {whose}",
                    details=tuple(
                        f"{_label(key)} {_written(key, value)}"
                        for key, value in limits.items()
                    ),
                )


def _single(section: str, old: Any, new: Any) -> Iterator[Edit]:
    if old != new:
        details = tuple(_details(old, new))
        yield Edit(kind=EditKind.CHANGED, section=section, name="", details=details)


def _details(old: Any, new: Any) -> Iterator[str]:
    """Yield each field that is another one, nested ones by their path."""
    before, after = _flat(old.model_dump()), _flat(new.model_dump())
    for key in dict.fromkeys([*before, *after]):
        was, is_now = before.get(key), after.get(key)
        if was == is_now:
            continue
        if key.split(".")[0] in _SECRET:
            yield f"{key} {_ref_word(was, is_now)}"
        else:
            yield f"{_label(key)} {_written(key, was)} → {_written(key, is_now)}"


def _ref_word(was: Any, is_now: Any) -> str:
    if was is None:
        return "added"
    return "removed" if is_now is None else "changed"


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key.value if isinstance(key, StrEnum) else key}"
        if isinstance(value, dict):
            found |= _flat(value, f"{name}.")
        else:
            found[name] = value
    return found


def _label(key: str) -> str:
    """Return the key as the catalog writes it: ``memory`` for ``memory_bytes``."""
    for unit in _UNITS:
        key = key.removesuffix(f"_{unit}")
    return key


def _written(key: str, value: Any) -> str:
    """Return *value* as the catalog writes it; a dash where there is none."""
    if value is None or value in ((), ""):
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    write = _UNITS.get(key.rpartition("_")[2])
    if write is not None:
        return write(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value)
