"""A timeline for a message to whoever helps: with the request, without other people."""

from __future__ import annotations

from typing import Any, Final

from fleet_contracts import __version__
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.sentences import headline
from fleet_contracts.timeline import Timeline
from fleet_lab.drawn import as_text


_WIDTH = 10


def support_text(timeline: Timeline) -> str:
    """Return *timeline* as text, below what finds it in the fleet's own records."""
    facts = {
        "request": f"{timeline.workload} start {timeline.generation}",
        "user": timeline.user,
        "server": timeline.server or "(default)",
        "profile": timeline.profile,
        "class": timeline.class_name,
        "machine": timeline.machine,
        "versions": f"fleet_lab {__version__}, {timeline.schema_}",
    }
    lines = [f"{name:{_WIDTH}}{fact}" for name, fact in facts.items() if fact]
    return "\n".join([*lines, "", as_text(anonymous(timeline))])


def anonymous(timeline: Timeline) -> Timeline:
    """Leave out who the others are: who holds a place, who drains a machine."""
    explanation = _nameless(timeline.explanation)
    changes: dict[str, Any] = {
        "explanation": explanation,
        # The document's own one may name a holder.
        "headline": headline(
            timeline.state,
            explanation=explanation,
            position=timeline.position,
            machine=timeline.machine,
            parked=timeline.parked,
            now=timeline.as_of,
        ),
        "events": tuple(
            event.model_copy(update={"explanation": _nameless(event.explanation)})
            for event in timeline.events
        ),
    }
    return timeline.model_copy(update=changes)


_NAMING: Final = frozenset({Reason.DRAINING, Reason.RELEASE_WISHED})
"""Their subject is a person."""


def _nameless(explanation: Explanation | None) -> Explanation | None:
    if explanation is None:
        return None
    holders = tuple(
        holder.model_copy(update={"owner": None, "title": None})
        for holder in explanation.holders
    )
    subject = None if explanation.reason in _NAMING else explanation.subject
    return explanation.model_copy(update={"holders": holders, "subject": subject})
