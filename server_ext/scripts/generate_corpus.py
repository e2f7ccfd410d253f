"""Writes what the English must be: ``tests/data/sentences.json``.

The Hub's pages speak through ``fleet_contracts.sentences``, panels through their own
table.  The front end's tests read this file and must say the very same.
"""
# ruff: noqa: INP001 - a script beside the front end, not a package

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from fleet_contracts.allocations import State
from fleet_contracts.causes import CAUSES
from fleet_contracts.reasons import Explanation, Holder, LikelyEnd, Reason
from fleet_contracts.sentences import headline, remedy, sentence


TARGET = Path(__file__).parent.parent / "tests" / "data" / "sentences.json"

_SINCE = datetime(2026, 11, 29, 10, 2, tzinfo=UTC)
_UNTIL = datetime(2026, 11, 29, 14, 12, tzinfo=UTC)
_LIKELY = LikelyEnd(early=_SINCE, late=_UNTIL, samples=34)
_HOLDERS = tuple(
    Holder(
        workload=f"w{number}",
        owner=owner,
        title=title,
        since=_SINCE,
        ends_by=end,
        idle_since=idle,
        idle_ends=idle_end,
        asked_at=asked,
        likely_end=likely,
    )
    for number, (owner, title, end, idle, idle_end, asked, likely) in enumerate(
        [
            ("ada", "GPU large", _UNTIL, _SINCE, None, _SINCE, _LIKELY),
            (None, None, None, _SINCE, _UNTIL, None, None),
            ("grace", None, _UNTIL, None, None, _UNTIL, None),
            (None, "CPU small", None, None, None, None, None),
        ]
    )
)
_AMOUNTS: tuple[dict[str, Any], ...] = (
    {},
    {"requested": 1, "capacity": 2, "free": 0, "unit": "devices"},
    {
        "requested": 3 * 1024**3 // 2,
        "capacity": 5 * 1024**3 // 4,
        "free": 7,
        "unit": "bytes",
    },
    {
        "requested": 32 * 1024**3 + 1,
        "capacity": 32 * 1024**3,
        "free": 1024**3 - 1,
        "unit": "bytes",
    },
    {"requested": 1000, "capacity": 2500, "free": 0, "unit": "milli_cores"},
    {"requested": 5400, "capacity": 90_061, "free": 0, "unit": "seconds"},
    {"requested": 1, "capacity": 4, "unit": "warm_places"},
    {"requested": 3, "free": 1},
)
BECAUSE_OF = (Reason.OFFLINE, Reason.DRAINING, Reason.AGENT_REJECTED)
"""Reasons of a machine that take the ground from a promise as well."""
_NAMES: tuple[dict[str, Any], ...] = (
    {},
    {"subject": "bio"},
    {"subject": "bio", "machine": "mac-07", "detail": "seen twice"},
)


def generate() -> str:
    """Return the whole document."""
    document = {
        "reasons": [_reason(explanation) for explanation in _explanations()],
        "headlines": list(_headlines()),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _explanations() -> Iterator[Explanation]:
    for reason in Reason:
        yield Explanation(reason=reason)
        yield Explanation(reason=reason, **_NAMES[1], **_AMOUNTS[1])
    for names, amounts in product(_NAMES, _AMOUNTS):
        yield Explanation(reason=Reason.QUOTA_IN_USE, **names, **amounts)
    for count in range(1, len(_HOLDERS) + 1):
        yield Explanation(
            reason=Reason.METAL_BUSY, machine="mac-07", holders=_HOLDERS[:count]
        )
    mine = _HOLDERS[0].model_copy(update={"own": True})
    yield Explanation(reason=Reason.METAL_BUSY, machine="mac-07", holders=(mine,))
    waiting = tuple(
        Holder(
            workload=holder.workload, owner=holder.owner, own=holder.own, promised=True
        )
        for holder in (mine, *_HOLDERS[1:])
    )
    for holders in (waiting[:1], waiting, _HOLDERS[:1] + waiting[:1], _HOLDERS[:3]):
        yield Explanation(reason=Reason.BEHIND, machine="mac-07", holders=holders)
    for code in (*BECAUSE_OF, Reason.DISK_FULL, Reason.CPU_BUSY):
        yield Explanation(reason=Reason.AGENT_REJECTED, subject=code.value)
    for cause in (*CAUSES, *BECAUSE_OF, "not_yet_invented"):
        for holders in ((), (mine,), _HOLDERS[:1], _HOLDERS[1:2]):
            yield Explanation(
                reason=Reason.PROMISE_BROKEN,
                subject=cause,
                machine="mac-07",
                holders=holders,
            )


def _reason(explanation: Explanation) -> dict[str, Any]:
    return {
        "explanation": _json(explanation),
        "sentence": sentence(explanation),
        "remedy": remedy(explanation.reason),
    }


def _headlines() -> Iterator[dict[str, Any]]:
    explanations = (
        None,
        Explanation(reason=Reason.GPU_BUSY, requested=1, free=0, unit="devices"),
        Explanation(reason=Reason.OFFLINE, machine="mac-07"),
    )
    for state, explanation, position, machine, parked in product(
        State, explanations, (None, 0, 2), (None, "mac-07"), (False, True)
    ):
        if state is not State.QUEUED and (position is not None or parked):
            continue
        yield {
            "state": state.value,
            "explanation": None if explanation is None else _json(explanation),
            "position": position,
            "machine": machine,
            "parked": parked,
            "headline": headline(
                state,
                explanation=explanation,
                position=position,
                machine=machine,
                parked=parked,
            ),
        }


def _json(explanation: Explanation) -> dict[str, Any]:
    return explanation.model_dump(mode="json", exclude_defaults=True)


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(generate(), encoding="utf-8")
    sys.stdout.write(f"{TARGET.name} written\n")
