"""Short words of the fleet's pages for what is many, or coded."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fleet_contracts.workloads import Resources
from fleet_hub.audit_words import words
from fleet_hub.controller.audit_entry import (
    Action,
    ActorRole,
    AuditEntry,
    Numbered,
    TargetKind,
)
from fleet_hub.machine_words import counted, resources_line


ONE = "GPU-06b0aec7-92ba-5b5a-a61f-6f9dae28628a"
TWO = "GPU-2388ddab-21d7-5ca1-8798-8fe83db5b9f8"


def held(*devices: str) -> str:
    """Return how an allocation with these devices is told."""
    return resources_line(
        Resources(cpu_milli=1000, memory_bytes=1 << 30, devices=devices)
    )


def test_one_gpu_is_named_whole_and_several_by_what_tells_them_apart() -> None:
    """Eight long names in a row tell nobody anything."""
    assert held(ONE).endswith(f", GPU {ONE.removeprefix('GPU-')}")
    assert held(ONE, TWO).endswith(", 2 GPUs: 06b0aec7, 2388ddab")
    assert held().endswith("GiB")


def test_equal_devices_are_counted_in_the_order_in_which_they_come() -> None:
    """Others stay apart."""
    assert (
        counted(["A100", "L4", "A100", "A100"]) == "3 \N{MULTIPLICATION SIGN} A100, L4"
    )
    assert counted([]) == ""


@pytest.mark.parametrize("action", [Action.AUDIENCE_SET, Action.LENDING_SET])
@pytest.mark.parametrize(
    ("detail", "said"),
    [("guest", "everybody"), ("owner", "its owner alone"), ("newer", "newer")],
)
def test_the_log_says_whom_a_machine_serves_as_its_page_does(
    action: Action, detail: str, said: str
) -> None:
    """And a word of a newer controller as it is."""
    entry = AuditEntry(
        at=datetime(2026, 11, 2, tzinfo=UTC),
        actor="root",
        role=ActorRole.ADMIN,
        action=action,
        kind=TargetKind.MACHINE,
        target="box",
        detail=detail,
    )
    assert words(Numbered(seq=1, entry=entry)).endswith(f"({said})")
