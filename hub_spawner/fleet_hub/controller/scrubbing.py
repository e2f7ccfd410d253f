"""What a machine says of a workload, without the ref that it was handed for it.

An agent's own words have none.  This is the second look of the one who would be blamed:
a timeline is read by users, and a ref is for operators.
"""

from __future__ import annotations

import re
from typing import Final

from fleet_contracts.reasons import Explanation
from fleet_contracts.timeline import Progress
from fleet_hub.controller.records import Workload


_INSTEAD: Final = "the runtime"


def scrubbed(record: Workload, told: Explanation | None) -> Explanation | None:
    """Return *told* without *record*'s ref."""
    ref = _ref(record)
    if told is None or ref is None:
        return told
    texts = {"detail": told.detail, "subject": told.subject}
    clean = {
        name: _without(ref, text) for name, text in texts.items() if text is not None
    }
    return told if clean.items() <= texts.items() else told.model_copy(update=clean)


def scrubbed_progress(record: Workload, told: Progress) -> Progress:
    """Return *told* without *record*'s ref."""
    ref = _ref(record)
    if ref is None:
        return told
    clean = {"step": _without(ref, told.step), "unit": _without(ref, told.unit)}
    return told.model_copy(update=clean)


def _ref(record: Workload) -> str | None:
    return None if record.assignment is None else record.assignment.runtime.ref


def _without(ref: str, text: str) -> str:
    """Return *text* with something general in place of *ref*, where it is a whole word."""
    return re.sub(rf"(?<![\w-]){re.escape(ref)}(?![\w-])", _INSTEAD, text)
