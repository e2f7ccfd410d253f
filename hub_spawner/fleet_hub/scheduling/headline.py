"""One answer out of many machines' answers: the nearest miss, or "never" with numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.scheduling.nearness import is_hopeless, nearest


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
