"""What several tests of the agent share."""

from __future__ import annotations

import pytest
from patience import PATIENCE

from fleet_agent import picture


@pytest.fixture
def first_facts_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first facts be there before any launch, on the busiest machine too."""
    monkeypatch.setattr(picture, "_FIRST_SECONDS", PATIENCE)
