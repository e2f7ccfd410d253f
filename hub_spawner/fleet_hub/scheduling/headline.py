"""One answer out of many machines' answers: the nearest miss, or "never" with numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.scheduling.nearness import nearest


_SIZES: Final = {
    Reason.GPU_COUNT_TOO_SMALL: "devices",
    Reason.VRAM_TOO_SMALL: "device_memory",
    Reason.CPU_TOO_SMALL: "cpu",
    Reason.MEMORY_TOO_SMALL: "memory",
    Reason.DISK_TOO_SMALL: "disk",
}


NO_SUCH_LABEL: Final = "it has no such label"
"""What a machine says whose record does not have the label at all."""


def fleet_answer(misses: Sequence[Explanation]) -> Explanation:
    """Return why no machine will ever take a workload, given each machine's own reason.

    Asked only where every machine says "never": one that is merely away, drained or not
    known yet keeps the hope.
    """
    headline = nearest(misses)
    if headline is None:
        return Explanation(reason=Reason.NO_MACHINES)
    if headline.reason in _SIZES:
        return _exceeds(headline, misses)
    if headline.reason is Reason.LABEL_MISMATCH:
        return headline.model_copy(
            update={"machine": None, "detail": _labels(headline, misses)}
        )
    return headline.model_copy(update={"machine": None})


def _labels(headline: Explanation, misses: Iterable[Explanation]) -> str:
    """Return whether the label is one that nobody has, or the value is."""
    details = {miss.detail for miss in misses if miss.subject == headline.subject}
    name, _, _ = (headline.subject or "").partition("=")
    if details <= {NO_SUCH_LABEL}:
        return f"no machine has a label called {name}"
    return "no machine has this label and value"


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
