"""Callers that want the same thing share one effort."""

from __future__ import annotations

import asyncio

import pytest

from fleet_agent.drivers.base import ProgressSink
from fleet_agent.drivers.common.efforts import SharedWork
from fleet_contracts.timeline import Progress


class Effort:
    """A piece of work whose course a test controls."""

    def __init__(self) -> None:
        """Nothing has begun."""
        self.begun = 0
        self.cancelled = 0
        self.go = asyncio.Event()
        self.started = asyncio.Event()

    async def __call__(self, progress: ProgressSink) -> str:
        """Wait for the test's word, and count what happens."""
        self.begun += 1
        progress(Progress(step="work", done=1))
        self.started.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        progress(Progress(step="work", done=2))
        return "result"


@pytest.mark.asyncio
async def test_concurrent_callers_share_one_effort_and_all_hear_of_it() -> None:
    """The late one hears the last thing that was told before it came."""
    shared: SharedWork[str] = SharedWork()
    effort = Effort()
    heard: list[list[int]] = [[], []]
    first = asyncio.create_task(
        shared.join("key", effort, lambda told: heard[0].append(told.done))
    )
    await effort.started.wait()
    second = asyncio.create_task(
        shared.join("key", effort, lambda told: heard[1].append(told.done))
    )
    await asyncio.sleep(0)
    effort.go.set()

    assert await asyncio.gather(first, second) == ["result", "result"]
    assert effort.begun == 1
    assert heard == [[1, 2], [1, 2]]


@pytest.mark.asyncio
async def test_one_cancelled_caller_does_not_disturb_the_others() -> None:
    """The work goes on for whoever still waits."""
    shared: SharedWork[str] = SharedWork()
    effort = Effort()
    first = asyncio.create_task(shared.join("key", effort, lambda told: None))
    second = asyncio.create_task(shared.join("key", effort, lambda told: None))
    await effort.started.wait()

    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    effort.go.set()

    assert await second == "result"
    assert effort.cancelled == 0


@pytest.mark.asyncio
async def test_the_last_cancelled_caller_ends_the_work() -> None:
    """When the cancellation arrives the work is over, and the next begins anew."""
    shared: SharedWork[str] = SharedWork()
    effort = Effort()
    callers = [
        asyncio.create_task(shared.join("key", effort, lambda told: None))
        for _ in range(2)
    ]
    await effort.started.wait()

    for caller in callers:
        caller.cancel()
    await asyncio.wait(callers)

    assert effort.cancelled == 1
    effort.go.set()
    assert await shared.join("key", effort, lambda told: None) == "result"
    assert effort.begun == 2


@pytest.mark.asyncio
async def test_a_failure_reaches_every_caller_and_is_not_remembered() -> None:
    """The next caller tries again."""
    shared: SharedWork[str] = SharedWork()

    async def fail(progress: ProgressSink) -> str:
        raise ValueError("no")

    results = await asyncio.gather(
        shared.join("key", fail, lambda told: None),
        shared.join("key", fail, lambda told: None),
        return_exceptions=True,
    )

    assert [type(result) for result in results] == [ValueError, ValueError]
    effort = Effort()
    effort.go.set()
    assert await shared.join("key", effort, lambda told: None) == "result"
