"""The controller in its event loop: what it does while nothing happens."""

from __future__ import annotations

import asyncio

import pytest
from fleet_controller import Fleet
from patience import PATIENCE
from typing_extensions import override

from fleet_hub.adapters.memory_store import MemoryStore
from fleet_hub.service.runner import Runner


class PutsOff(MemoryStore):
    """A store that puts work off, and tells when it is asked to do it."""

    def __init__(self) -> None:
        """Begin with something put off."""
        super().__init__()
        self.done = asyncio.Event()

    @override
    def write_back(self) -> None:
        self.done.set()


@pytest.mark.asyncio
async def test_an_idle_controller_does_what_commits_put_off() -> None:
    """Nobody's commit has to do it then."""
    store = PutsOff()
    runner = Runner(Fleet(store).core)
    runner.start()
    try:
        async with asyncio.timeout(PATIENCE):
            await store.done.wait()
    finally:
        await runner.close()
