"""Whether two pictures tell the same facts, their moments aside."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fleet_contracts.capabilities import OwnerTerm, WorkerCapabilities


_GIB: Final = 1 << 30
_MOMENTS: Final = frozenset({"observed_at", "detected_at", "usage", "excerpt"})


def same_facts(left: WorkerCapabilities, right: WorkerCapabilities) -> bool:
    """Whether *left* and *right* differ in nothing that anyone must be told.

    Times and usage are moments, not facts.  Free disk moves with every file, so less
    than a GiB, or than a twentieth, is no change.
    """
    return _same_disk(left, right) and _facts(left) == _facts(right)


def same_terms(left: Iterable[OwnerTerm], right: Iterable[OwnerTerm]) -> bool:
    """Whether two looks at the owner's terms came to the same, their moments aside."""
    return [_term(item) for item in left] == [_term(item) for item in right]


def _term(term: OwnerTerm) -> Any:
    return term.model_dump(exclude={"observed"})


def _same_disk(left: WorkerCapabilities, right: WorkerCapabilities) -> bool:
    before, after = left.host.disk_free_bytes.value, right.host.disk_free_bytes.value
    if before is None or after is None:
        return before is after
    return abs(before - after) < max(_GIB, max(before, after) // 20)


def _facts(picture: WorkerCapabilities) -> Any:
    document = picture.model_dump(mode="json", by_alias=True)
    document["host"].pop("disk_free_bytes")
    return _without_moments(document)


def _without_moments(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_moments(item)
            for name, item in value.items()
            if name not in _MOMENTS
        }
    if isinstance(value, list):
        return [_without_moments(item) for item in value]
    return value
