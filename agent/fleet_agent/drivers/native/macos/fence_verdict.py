"""Does the fence hold?  Pure: from what the witnesses printed to a verdict.

Only one combination of answers means yes: without the fence both witnesses reach the
GPU, and behind it neither does.  Whatever is missing, strange or late means that nobody
knows, and then a notebook holds the GPU.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final


class Witness(StrEnum):
    """Who looks for the GPU."""

    METAL = "metal"
    """The system's own framework, asked by the agent's interpreter alone."""
    TORCH = "torch"
    """The torch of an environment, which may be anybody's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What one run of a witness left behind."""

    exit_code: int | None
    """None: it did not end in time, or could not be started."""
    output: bytes


class Sight(StrEnum):
    """What one run of a witness means."""

    REACHED = "reached"
    """Something of the GPU is there."""
    NOTHING = "nothing"
    """There is no GPU."""
    DOUBT = "doubt"


_EXPECTED: Final[Mapping[Witness, Mapping[str, type[int]]]] = {
    Witness.METAL: {"default": bool, "devices": int},
    Witness.TORCH: {"available": bool, "computed": bool},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sights:
    """What both witnesses saw, with the GPU's rights and without."""

    open: dict[Witness, Sight]
    fenced: dict[Witness, Sight]


def sight(witness: Witness, heard: Heard, word: str, *, fenced: bool) -> Sight:
    """Return what *heard* means; *word* is the one that the run was given.

    Half an answer, such as a device that is no default, is a hole in a fence, and
    proves nothing where there is none.
    """
    facts = _facts(witness, heard, word)
    if facts is None:
        return Sight.DOUBT
    found = [bool(value) for value in facts.values()]
    reached = any(found) if fenced else all(found)
    return Sight.REACHED if reached else Sight.NOTHING


def judge(sights: Sights) -> tuple[bool | None, str]:
    """Return whether the fence holds, and why it is not known to."""
    if Sight.REACHED in sights.fenced.values():
        return False, "gpu_reached"
    if any(seen is not Sight.REACHED for seen in sights.open.values()):
        # A witness that never sees the GPU proves nothing by not seeing it.
        return None, "control_failed"
    whole = set(Witness)
    if sights.open.keys() != whole or sights.fenced.keys() != whole:
        return None, "probe_failed"
    if any(seen is not Sight.NOTHING for seen in sights.fenced.values()):
        return None, "probe_failed"
    return True, "ok"


def _facts(
    witness: Witness, heard: Heard, word: str
) -> Mapping[str, bool | int] | None:
    """Return what was said, if it was said exactly as asked."""
    if heard.exit_code != 0:
        return None
    try:
        told = json.loads(heard.output.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    expected = _EXPECTED[witness]
    if not isinstance(told, dict) or told.keys() != {"word", *expected}:
        return None
    facts: dict[str, Any] = {name: told[name] for name in expected}
    # A yes-or-no is not a number, and a number is no yes or no.
    fits = all(
        type(value) is expected[name] and value >= 0 for name, value in facts.items()
    )
    return facts if fits and told["word"] == word else None
