"""The least that would have to change, in words."""

from __future__ import annotations

import pytest

from fleet_contracts.changes import Change, ChangeKind, change_sentence
from fleet_contracts.workloads import ServerKey


@pytest.mark.parametrize(
    ("kind", "requested", "instead", "said"),
    [
        (ChangeKind.DEVICES, "4", "1", "With 1 device instead of 4"),
        (ChangeKind.DEVICES, "4", "2", "With 2 devices instead of 4"),
        (ChangeKind.CPU, "8", "1", "With 1 core instead of 8"),
        (ChangeKind.MEMORY, "16G", "512", "With 512 of memory instead of 16 GiB"),
        (ChangeKind.CLASS, "large", "small", "With the class small instead of large"),
    ],
)
def test_a_change_says_what_instead_and_for_how_many_machines(
    kind: ChangeKind, requested: str, instead: str, said: str
) -> None:
    """One is told as one, and amounts in their units."""
    change = Change(
        kind=kind, requested=requested, instead=instead, machines=2, free_now=0
    )
    told = change_sentence(change)
    assert said in told
    assert told.endswith("2 machines, none free now.")


def test_a_server_is_named_by_the_hubs_own_numbers() -> None:
    """In URLs and in the store."""
    assert str(ServerKey(user_id=3, server_id=17)) == "3-17"
