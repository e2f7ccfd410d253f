"""What was written down, as it may be read now: names as the setting of today says.

Explanations are kept as they were told.  Whoever turns ``names_visible`` off means what
was told before as well, so names are left out where they are read.
"""

from __future__ import annotations

from fleet_contracts.names import without_names
from fleet_contracts.reasons import Explanation
from fleet_contracts.timeline import TimelineEvent
from fleet_hub.controller.core import Core
from fleet_hub.controller.records import Workload


def explanation_of(core: Core, record: Workload) -> Explanation | None:
    """Return why *record* is where it is, as it may be read."""
    why = record.explanation
    return why if why is None or core.settings.names_visible else without_names(why)


def events_of(
    core: Core, workload: str, *, after: int = 0
) -> tuple[TimelineEvent, ...]:
    """Return what is kept of a timeline after number *after*, as it may be read."""
    kept = core.store.events(workload, after=after)
    return kept if core.settings.names_visible else tuple(map(_discreet, kept))


def _discreet(event: TimelineEvent) -> TimelineEvent:
    why = event.explanation
    found = None if why is None else without_names(why)
    return event if found is why else event.model_copy(update={"explanation": found})
