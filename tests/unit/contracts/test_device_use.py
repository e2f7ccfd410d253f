"""Who uses a GPU is told from what one look at it shows, and unknown stays unknown."""

from __future__ import annotations

from typing import Any

import pytest

from fleet_contracts.capabilities import DeviceKind, DeviceUsage
from fleet_contracts.device_use import is_in_use, used_by_programs


def seen(**facts: Any) -> DeviceUsage:
    """Return one look at a GPU."""
    return DeviceUsage(accelerator=DeviceKind.CUDA, uuid="GPU-a", **facts)


@pytest.mark.parametrize(
    ("facts", "mib"),
    [
        # Nothing, or what an idle GPU keeps for itself.
        ({"memory_used_mib": 0}, 0),
        ({"memory_used_mib": 4, "utilisation_percent": 0}, 0),
        # A desktop: windows are drawn, nobody computes.
        ({"memory_used_mib": 700, "compute_processes": 0}, 0),
        (
            {
                "memory_used_mib": 900,
                "compute_processes": 0,
                "utilisation_percent": 35,
            },
            0,
        ),
        # A program that computes, beside a desktop or without one.
        (
            {
                "memory_used_mib": 24_576,
                "compute_processes": 1,
                "compute_memory_mib": 24_000,
            },
            24_576,
        ),
        (
            {
                "memory_used_mib": 1100,
                "compute_processes": 2,
                "compute_memory_mib": 500,
            },
            1100,
        ),
        # Its amount is hidden: it computes all the same.
        ({"memory_used_mib": 600, "compute_processes": 1}, 600),
        # A helper that waits, such as MPS's own server, beside a desktop.
        (
            {
                "memory_used_mib": 530,
                "compute_processes": 1,
                "compute_memory_mib": 29,
            },
            0,
        ),
        # Something small that computes all the time.
        (
            {
                "memory_used_mib": 150,
                "compute_processes": 1,
                "compute_memory_mib": 150,
                "utilisation_percent": 99,
            },
            150,
        ),
        # More than any desktop takes, from where the list is not seen or is empty.
        ({"memory_used_mib": 24_576}, 24_576),
        ({"memory_used_mib": 24_576, "compute_processes": 0}, 24_576),
        # Nobody can tell.
        ({}, None),
        ({"memory_used_mib": 700}, None),
        ({"compute_processes": 1, "compute_memory_mib": 9000}, None),
    ],
)
def test_a_program_is_told_from_a_desktop(
    facts: dict[str, Any], mib: int | None
) -> None:
    """Memory that draws does not count, and memory that computes does."""
    assert used_by_programs(seen(**facts)) == mib


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"memory_used_mib": 4, "utilisation_percent": 3}, False),
        ({"memory_used_mib": 4}, False),
        ({"memory_used_mib": 256}, True),
        ({"memory_used_mib": 4, "utilisation_percent": 10}, True),
        ({}, True),
    ],
)
def test_an_idle_gpu_needs_no_second_question(
    facts: dict[str, Any], *, expected: bool
) -> None:
    """Who computes is only asked where somebody may."""
    assert is_in_use(seen(**facts)) is expected
