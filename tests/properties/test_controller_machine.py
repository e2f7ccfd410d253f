"""Whatever happens in whatever order: nothing twice, nothing beyond, nothing lost."""

from __future__ import annotations

import os

import pytest
from controller_machine import ControllerMachine
from hypothesis import settings


# So many steps take minutes on a busy machine.
pytestmark = pytest.mark.timeout(7200)

STEPS = int(os.environ.get("FLEET_PROPERTY_STEPS", "5000"))


class TestController(ControllerMachine.TestCase):  # type: ignore[misc, name-defined]
    """Lives of fifty steps each."""

    settings = settings(
        max_examples=max(1, STEPS // 50), stateful_step_count=50, deadline=None
    )
