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
_MOST: Final = 20_000
"""More than is ever shown of what a machine says."""
_REGISTRY: Final = r"(?:[\w.:-]{1,100}/){0,8}"
"""What may stand before an image's name; no longer, or a look would take for ever."""
_VERSION: Final = r"(?::[\w][\w.-]*)?(?:@[\w+.-]+:[0-9a-fA-F]+)?"
"""An image's tag and digest, if it has any."""


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
    """Return *text* with something general in place of *ref*, where it is a whole word.

    An engine says an image in ways of its own: without its tag, with another digest,
    without its registry, or with the one that goes without saying.
    """
    text = text[:_MOST]
    for name in _names(ref):
        wanted = rf"(?<![\w-]){_REGISTRY}{re.escape(name)}{_VERSION}(?![\w-])"
        text = re.sub(wanted, _INSTEAD, text, flags=re.IGNORECASE)
    return text


def _names(ref: str) -> tuple[str, ...]:
    """Return *ref*, and what is left of an image's without version and registry.

    One word alone is a word of English as well: then only the whole counts.
    """
    image = re.sub(rf"{_VERSION}$", "", ref)
    first, slash, rest = image.partition("/")
    is_host = bool(slash) and (first == "localhost" or bool(set(first) & set(".:")))
    inner = rest if is_host else image
    return (ref, image, inner) if "/" in inner else (ref, image) if slash else (ref,)
