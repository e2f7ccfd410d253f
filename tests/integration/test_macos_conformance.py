"""The native driver of a Mac keeps the promises of a driver, but for its kernel's part."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from fake_hub import FakeHub
from mac_bench import MacBench, a_tool
from native_bench import a_silent_hub

from fleet_agent.drivers.conformance import Conformance


@pytest.mark.asyncio
@pytest.mark.slow
@pytest.mark.timeout(600)
class TestMacDriver(Conformance):
    """Every promise, with real servers under a tool that enforces nothing."""

    @pytest_asyncio.fixture
    async def bench(self, tmp_path: Path) -> AsyncIterator[MacBench]:
        """A machine with a Hub that answers and one that does not."""
        state = tmp_path / "agent"
        state.mkdir(mode=0o700)
        with a_silent_hub() as silent_hub:
            async with FakeHub() as hub:
                yield MacBench(
                    state=state, hub=hub, silent_hub=silent_hub, tool=a_tool(tmp_path)
                )
