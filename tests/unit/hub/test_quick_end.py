"""How a process of ours lets go of itself."""

from __future__ import annotations

import subprocess
import sys

import pytest


PROGRAM = """
from fleet_hub.quick_end import end_quickly

class Loop:
    def __init__(self):
        self.me = self
    def __del__(self):
        print("searched for")

if {quickly}:
    end_quickly()
Loop.kept = Loop()
"""


@pytest.mark.parametrize("quickly", [True, False])
def test_no_garbage_is_searched_for_at_a_quick_end(*, quickly: bool) -> None:
    """What was imported is left as it lies; without the call Python looks through it."""
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(quickly=quickly)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (told.stdout == "") == quickly
