"""How entries stand in the ledger's tables."""

from __future__ import annotations

import json
from typing import Any

from fleet_agent.drivers.base import Handle
from fleet_agent.ledger_entry import Entry, Key, StopIntent
from fleet_contracts.protocol import AgentEvent
from fleet_contracts.reasons import Explanation
from fleet_contracts.workloads import WorkloadSpec


COLUMNS = "allocation, epoch, event, seq, spec, handle, url, explanation, stop, ends_at"


def entry_of(row: tuple[Any, ...]) -> Entry:
    """Return the entry that *row* (``COLUMNS``) describes.

    Raises:
        ValueError, KeyError, TypeError: the row is damaged.
    """
    allocation, epoch, event, seq, spec, handle, url, explanation, stop, ends_at = row
    return Entry(
        key=Key(allocation, epoch),
        event=AgentEvent(event),
        seq=seq,
        spec=None if spec is None else WorkloadSpec.model_validate_json(spec),
        handle=None if handle is None else _handle(allocation, handle),
        url=url,
        explanation=_explanation(explanation),
        stop=None if stop is None else _stop(stop),
        ends_at=ends_at,
    )


def handle_text(handle: Handle | None) -> str | None:
    """Return how *handle* is stored."""
    if handle is None:
        return None
    return json.dumps({"data": handle.data, "url": handle.url})


def explanation_text(explanation: Explanation | None) -> str | None:
    """Return how *explanation* is stored."""
    return None if explanation is None else explanation.model_dump_json()


def stop_text(intent: StopIntent) -> str:
    """Return how *intent* is stored."""
    explanation = intent.explanation
    return json.dumps(
        {
            "now": intent.now,
            "explanation": None
            if explanation is None
            else explanation.model_dump(mode="json"),
        }
    )


def _explanation(text: str | None) -> Explanation | None:
    return None if text is None else Explanation.model_validate_json(text)


def _handle(allocation: str, text: str) -> Handle:
    stored = json.loads(text)
    return Handle(allocation=allocation, data=stored["data"], url=stored["url"])


def _stop(text: str) -> StopIntent:
    stored = json.loads(text)
    explanation = stored["explanation"]
    return StopIntent(
        now=stored["now"],
        explanation=None
        if explanation is None
        else Explanation.model_validate(explanation),
    )
