"""Comparing the versions that tools and people write: ``8.6``, ``550.54.14``."""

from __future__ import annotations

import re


_NUMBERS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})*", re.ASCII)


def version_key(text: str) -> tuple[int, ...] | None:
    """Return the leading numbers of *text*, for comparison; None: there are none.

    ``8.10`` is newer than ``8.9``; what follows the numbers, as in ``2.4.0+cu124``, is
    a build and does not count.
    """
    match = _NUMBERS.match(text.strip())
    if match is None:
        return None
    numbers = [int(part) for part in match[0].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def is_older(version: str, least: str) -> bool:
    """Return whether *version* is known to be older than *least*.

    A version that cannot be read counts as older: it cannot be shown to suffice.
    """
    found, wanted = version_key(version), version_key(least)
    return wanted is not None and (found is None or found < wanted)
