"""The reference of a machine's facts names all that there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from fleet_contracts.capabilities import ProbeStatus, WorkerCapabilities


DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "machine-facts.md").read_text("utf-8")
# What needs no explanation: the frame of the document.
FRAME = {"schema_", "detected_at", "settled"}


def test_every_status_of_a_probe_is_described() -> None:
    """A reader of a status finds what it means for the devices."""
    for status in ProbeStatus:
        assert f"| `{status}` |" in PAGE, status


def test_every_part_of_the_picture_is_described() -> None:
    """No part of what a machine reports is missing in the reference."""
    for name in set(WorkerCapabilities.model_fields) - FRAME:
        assert f"`{name}`" in PAGE, name


def test_the_options_are_those_of_the_command() -> None:
    """The reference lists each option that the command has, and no other."""
    shown = subprocess.run(
        [sys.executable, "-m", "fleet_agent.cli", "probe", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    has = set(re.findall(r"--[a-z][a-z-]+", shown)) - {"--help"}

    assert set(re.findall(r"^\| `(--[a-z-]+)", PAGE, re.MULTILINE)) == has
