"""What every driver must promise, as a suite that runs against any of them.

A driver's tests make a class of ``Conformance`` and give it a bench: how to make jobs
that behave, and jobs with a named fault.  pytest collects the inherited tests::

    @pytest.mark.asyncio
    class TestMyDriver(Conformance):
        @pytest.fixture
        def bench(self) -> Bench: ...

A fault that a driver cannot have is left out of the bench's ``faults``; leaving one out
is a statement about the driver, and skips its test.
"""

# ruff: noqa: S101

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fleet_agent.drivers.base import (
    Condition,
    Driver,
    DriverError,
    Job,
    ProgressSink,
    Standing,
)
from fleet_agent.drivers.bench import (
    Bench,
    Fault,
    Started,
    need,
    start,
    start_and_abandon,
    start_and_close,
)
from fleet_contracts.reasons import ReasonKind
from fleet_contracts.timeline import Progress


Result = TypeVar("Result")


class Conformance:
    """The promises, one test each; a subclass brings the ``bench`` fixture."""

    async def test_a_job_starts_and_its_last_handle_has_the_address(
        self, bench: Bench
    ) -> None:
        """The server answers when the last handle is there, and not before."""
        driver = bench.driver()
        started = await self._in_time(bench, start(driver, bench.job("plain")))
        try:
            assert started.error is None, started.error
            assert [handle.url is None for handle in started.handles][:-1] == [True] * (
                len(started.handles) - 1
            )
            assert started.last.url
            assert await bench.answers(started.last)
            assert await bench.is_running(started.last)
        finally:
            await self._stop(bench, driver, started)

    async def test_preparing_again_and_at_the_same_time_is_harmless(
        self, bench: Bench
    ) -> None:
        """The work is done once and shared."""
        driver = bench.driver()
        job = bench.job("twice")

        await self._in_time(
            bench,
            asyncio.gather(
                driver.prepare(job, _ignore),
                driver.prepare(job, _ignore),
            ),
        )
        await self._in_time(bench, driver.prepare(job, _ignore))

    async def test_a_cancelled_preparation_can_be_tried_again(
        self, bench: Bench
    ) -> None:
        """Whatever it had begun does not stand in the way."""
        driver = bench.driver()
        job = bench.job("cancelled")
        task = asyncio.create_task(_prepare(driver, job, _ignore))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

        await self._in_time(bench, driver.prepare(job, _ignore))

    async def test_stop_ends_everything_and_may_be_repeated(self, bench: Bench) -> None:
        """Nothing runs, nothing is left, and a second stop changes nothing."""
        driver = bench.driver()
        started = await self._in_time(bench, start(driver, bench.job("stopped")))

        await self._stop(bench, driver, started)
        await self._stop(bench, driver, started)

        assert not await bench.answers(started.last)

    async def test_wait_returns_when_a_stopped_job_is_gone(self, bench: Bench) -> None:
        """The one who waits hears of the end."""
        driver = bench.driver()
        started = await self._in_time(bench, start(driver, bench.job("waited")))
        waiting = asyncio.create_task(driver.wait(started.last))
        await asyncio.sleep(0)

        await self._stop(bench, driver, started)
        condition = await self._in_time(bench, waiting)

        assert condition.standing is Standing.GONE

    async def test_a_new_agent_finds_what_runs_and_can_stop_it(
        self, bench: Bench
    ) -> None:
        """All it has is the last handle."""
        first = bench.driver()
        started = await self._in_time(bench, start(first, bench.job("recovered")))
        await first.close()
        second = bench.driver()

        condition = await self._in_time(bench, second.recover(started.last))
        answered = await bench.answers(started.last)
        await self._stop(bench, second, started)
        after = await self._in_time(bench, second.recover(started.last))

        assert condition.standing is Standing.RUNNING
        assert answered
        assert after.standing is Standing.GONE

    async def test_a_job_may_be_given_up_between_any_two_steps(
        self, bench: Bench
    ) -> None:
        """Stopping with the last handle undoes exactly what was made."""
        steps = 1
        while True:
            driver = bench.driver()
            job = bench.job(f"closed-after-{steps}")
            started = await self._in_time(bench, start_and_close(driver, job, steps))
            await self._stop(bench, driver, started)
            if len(started.handles) < steps or started.last.url:
                return
            steps += 1

    async def test_a_new_agent_undoes_what_a_killed_one_left_after_any_step(
        self, bench: Bench
    ) -> None:
        """The agent died between two steps; its successor has the handle, no more."""
        steps = 1
        while True:
            job, first = bench.job(f"killed-after-{steps}"), bench.driver()
            async with start_and_abandon(first, job, steps) as started:
                successor = bench.driver()
                condition = await self._in_time(bench, successor.recover(started.last))
                await self._stop(bench, successor, started)
            # Its process was not killed after all, and lets go of what has ended.
            await self._stop(bench, first, started)
            if started.last.url:
                assert condition.standing is Standing.RUNNING
                return
            assert condition.standing is not Standing.RUNNING
            steps += 1

    async def test_a_job_can_be_started_again_after_its_stop(
        self, bench: Bench
    ) -> None:
        """The same allocation, the same files, no trace of the first time."""
        driver = bench.driver()
        for _ in range(2):
            started = await self._in_time(bench, start(driver, bench.job("again")))
            try:
                assert started.error is None, started.error
            finally:
                await self._stop(bench, driver, started)

    async def test_a_failed_preparation_is_explained(self, bench: Bench) -> None:
        """Nothing was started, and the user gets a code."""
        need(bench, Fault.FAILS_TO_PREPARE)
        job = bench.job("unprepared", Fault.FAILS_TO_PREPARE)

        started = await self._in_time(bench, start(bench.driver(), job))

        assert started.handles == []
        _assert_explained(started.error)

    async def test_a_half_started_job_can_be_undone(self, bench: Bench) -> None:
        """The last handle names all that there is to undo."""
        await self._fails(bench, Fault.FAILS_HALF_STARTED)

    async def test_a_job_that_dies_before_it_is_ready_is_noticed(
        self, bench: Bench
    ) -> None:
        """The driver does not wait for an answer that cannot come."""
        await self._fails(bench, Fault.DIES_BEFORE_READY)

    async def test_a_job_that_is_never_ready_is_given_up(self, bench: Bench) -> None:
        """Within the job's own start time."""
        await self._fails(bench, Fault.NEVER_READY)

    async def test_a_job_that_ignores_its_stop_is_ended_by_force(
        self, bench: Bench
    ) -> None:
        """After the grace, and only then is ``stop`` done."""
        need(bench, Fault.IGNORES_STOP)
        driver = bench.driver()
        job = bench.job("stubborn", Fault.IGNORES_STOP)
        started = await self._in_time(bench, start(driver, job))
        assert started.error is None, started.error

        await self._in_time(bench, driver.stop(started.last, grace_seconds=0.5))

        assert not await bench.is_running(started.last)

    async def test_a_job_that_disappears_is_noticed_and_explained(
        self, bench: Bench
    ) -> None:
        """Whoever waits hears of it at once; a later agent finds it gone."""
        need(bench, Fault.DISAPPEARS)
        driver = bench.driver()
        job = bench.job("vanishing", Fault.DISAPPEARS)
        started = await self._in_time(bench, start(driver, job))
        assert started.error is None, started.error
        waiting: asyncio.Task[Condition] = asyncio.create_task(
            driver.wait(started.last)
        )

        await bench.remove(started.last)
        condition = await self._in_time(bench, waiting)
        later = await self._in_time(bench, bench.driver().recover(started.last))
        await self._stop(bench, driver, started)

        assert condition.standing is Standing.GONE
        assert condition.explanation is not None
        assert later.standing is Standing.GONE

    async def _fails(self, bench: Bench, fault: Fault) -> None:
        need(bench, fault)
        driver = bench.driver()
        job = bench.job(fault.value.replace(" ", "-"), fault)

        started = await self._in_time(bench, start(driver, job))
        _assert_explained(started.error)
        assert started.handles
        assert all(handle.url is None for handle in started.handles)

        await self._stop(bench, driver, started)

    async def _stop(self, bench: Bench, driver: Driver, started: Started) -> None:
        if not started.handles:
            return
        stopping = driver.stop(started.last, grace_seconds=bench.grace_seconds)
        await self._in_time(bench, stopping)
        assert not await bench.is_running(started.last)
        assert await bench.leftovers() == []

    async def _in_time(self, bench: Bench, work: Awaitable[Result]) -> Result:
        async with asyncio.timeout(bench.patience_seconds):
            return await work


async def _prepare(driver: Driver, job: Job, progress: ProgressSink) -> None:
    await driver.prepare(job, progress)


def _ignore(progress: Progress) -> None:
    """Hear nothing."""


def _assert_explained(error: DriverError | None) -> None:
    assert error is not None
    assert error.explanation.kind in (ReasonKind.FAILED, ReasonKind.NEVER)
    assert error.explanation.detail
