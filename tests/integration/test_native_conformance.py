"""The native driver keeps the promises of a driver, with real notebook servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from fake_hub import FakeHub
from native_bench import NativeBench, a_silent_hub

from fleet_agent.drivers.conformance import Conformance


@pytest.mark.asyncio
@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.timeout(600)
class TestNativeDriver(Conformance):
    """Every promise, for real."""

    @pytest_asyncio.fixture
    async def bench(self, tmp_path: Path) -> AsyncIterator[NativeBench]:
        """A machine with a Hub that answers and one that does not."""
        state = tmp_path / "agent"
        state.mkdir(mode=0o700)
        with a_silent_hub() as silent_hub:
            async with FakeHub() as hub:
                yield NativeBench(state=state, hub=hub, silent_hub=silent_hub)
