"""One answer out of many machines' answers: the nearest miss, or "never" with numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.scheduling.judgement import is_hopeless, nearest, nearness


MOST_REJECTIONS: Final = 10

_SIZES: Final = {
    Reason.GPU_COUNT_TOO_SMALL: "devices",
    Reason.VRAM_TOO_SMALL: "device_memory",
    Reason.CPU_TOO_SMALL: "cpu",
    Reason.MEMORY_TOO_SMALL: "memory",
    Reason.DISK_TOO_SMALL: "disk",
}


def fleet_answer(misses: Sequence[Explanation]) -> Explanation:
    """Return why no machine takes a workload, given each machine's own reason.

    "Never" is said only when every machine says so; a machine that is merely away,
    drained or not known yet keeps the hope.
    """
    headline = nearest(misses)
    if headline is None:
        return Explanation(reason=Reason.NO_MACHINES)
    if not is_hopeless(headline):
        return headline
    if headline.reason in _SIZES:
        return _exceeds(headline, misses)
    if headline.reason is Reason.LABEL_MISMATCH:
        return headline.model_copy(
            update={"machine": None, "detail": "no machine has this label and value"}
        )
    return headline.model_copy(update={"machine": None})


def counts_of(misses: Iterable[Explanation]) -> Mapping[Reason, int]:
    """Return how many machines gave each reason, the most frequent first."""
    counted = Counter(miss.reason for miss in misses)
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def examples_of(misses: Iterable[Explanation]) -> tuple[Explanation, ...]:
    """Return the nearest misses, at most ten; of equal ones by the machine's name."""
    ordered = sorted(misses, key=lambda miss: miss.machine or "")
    return tuple(sorted(ordered, key=nearness, reverse=True)[:MOST_REJECTIONS])


def _exceeds(headline: Explanation, misses: Iterable[Explanation]) -> Explanation:
    largest = max(
        miss.capacity or 0 for miss in misses if miss.reason is headline.reason
    )
    return Explanation(
        reason=Reason.EXCEEDS_ANY_MACHINE,
        subject=_SIZES[headline.reason],
        requested=headline.requested,
        capacity=largest,
        unit=headline.unit,
    )
