"""The terms on which an owner lends a machine, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fleet_contracts.capabilities import Observed, OwnerTerm
from fleet_contracts.term_sentences import term_line


GIB = 1024**3
SIX = datetime(2026, 11, 29, 18, tzinfo=UTC)


def a_term(name: str, **facts: Any) -> OwnerTerm:
    """Return one term as an agent reports it."""
    observed = Observed(source="settings", observed_at=SIX)
    return OwnerTerm(name=name, observed=observed, **facts)


@pytest.mark.parametrize(
    ("term", "said"),
    [
        (a_term("memory", amount=4 * GIB, unit="bytes"), "at most 4 GiB"),
        (a_term("cpu", amount=1500, unit="milli_cores"), "at most 1.5"),
        (a_term("hours", text="mon-fri 18:00-08:00"), "mon-fri 18:00-08:00"),
        (
            a_term("hours", met=False, reason="outside_hours", until=SIX),
            "until 2026-11-29 18:00 UTC",
        ),
        (a_term("moon", met=None, reason="is_full"), "now: is_full"),
        (a_term("moon"), "moon"),
    ],
)
def test_a_term_is_told_with_whether_it_is_met(term: OwnerTerm, said: str) -> None:
    """Words of a newer agent are shown as they are."""
    assert said in term_line(term)
