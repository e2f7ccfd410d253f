"""Fills the placeholders of a phrase, and leaves out the parts that have no value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final


_OPTIONAL: Final = re.compile(r"\[([^\]]*)\]")
_PLACEHOLDER: Final = re.compile(r"\{([a-z]+)\}")
_UNSAFE: Final = re.compile(
    "[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff]"
)
_LONGEST: Final = 500


def fill(phrase: str, values: Mapping[str, str]) -> str:
    """Return *phrase* with its ``{placeholders}`` filled.

    A part in ``[brackets]`` is left out when one of its placeholders has no value.
    """
    pieces = [*_taken_apart(phrase, frozenset(values))]
    pieces[1::2] = [values.get(name, "it") for name in pieces[1::2]]
    return "".join(pieces)


@lru_cache(maxsize=2048)
def _taken_apart(phrase: str, known: frozenset[str]) -> tuple[str, ...]:
    """Return the texts of *phrase*, and between them the names of its placeholders.

    One explanation says the same few phrases hundreds of times.
    """
    kept = _OPTIONAL.sub(
        lambda part: part[1] if _names(part[1]) <= known else "", phrase
    )
    return tuple(_PLACEHOLDER.split(kept))


def foreign(text: str | None) -> str:
    """Return a text that somebody else chose, made safe to stand in a sentence.

    Control characters and the marks that turn the direction of what follows could
    rewrite the sentence around them, and half a character cannot be sent at all.
    """
    plain = _UNSAFE.sub(" ", text or "").strip()
    return f"{plain[:_LONGEST]}…" if len(plain) > _LONGEST else plain


def _names(part: str) -> set[str]:
    return set(_PLACEHOLDER.findall(part))
